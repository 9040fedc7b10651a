"""Labelled examples of every format, the layouts of known sets, and what is refused with its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.config import SourceConfig
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import AnswerSpan
from dragoman.data.labelled.read import check_targets, labels_of, read_examples
from dragoman.errors import UserError

SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n1\ta b\tc d\t4.5\tNEUTRAL\n"
MRPC = '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tHe said "no\tShe said\n'
COLA = "gj04\t1\t\tThe sailors rode.\ncj99\t0\t*\tAs you eat.\n"
COLA_FIELDS = {"text": 4, "label": 2}
NOTED = "premise\tnote3\tchoice1\tchoice2\tchoice\tlabel\na\tx\tb\tc\ty\t1\n"
CHOICE = '{"prompt": "a", "endings": ["b", "c"], "label": "B"}\n'
CONLL = "-DOCSTART- -X- O\n\nJim NNP B-PER\nsleeps VBZ O\n\n \nIn IN O\n"


def read(path: Path, name: str, content: str, kind: Any, labelled: bool = True, **fields: Any) -> list[tuple]:
    file = path / name
    file.write_text(content, "utf-8")
    task = TaskConfig(kind, **fields)
    found = list(read_examples(SourceConfig((str(file),)), task, labelled))
    assert all(example.origin.startswith(str(file)) for example in found)
    return [(example.texts, example.target) for example in found]


@pytest.mark.parametrize(
    ("name", "content", "kind", "fields", "expected"),
    [
        ("sst.tsv", "one film\t0\ntwo\t1\n", "classify", {}, [(("one film",), "0"), (("two",), "1")]),
        ("a.csv", 'label,text\nx,"a, b"\n', "classify", {}, [(("a, b",), "x")]),
        ("a.jsonl", '{"text": "a", "label": 1}\n', "classify", {}, [(("a",), "1")]),
        ("film.pos", "good\nfine \n", "classify", {}, [(("good",), "pos"), (("fine",), "pos")]),
        ("sick.txt", SICK, "pair", {}, [(("a b", "c d"), "NEUTRAL")]),
        ("sick.txt", SICK, "similarity", {}, [(("a b", "c d"), 4.5)]),
        ("rated.csv", "review,rating\na b,3.5\n", "regress", {}, [(("a b",), 3.5)]),
        ("mrpc.txt", MRPC, "pair", {}, [(('He said "no', "She said"), "1")]),
        ("cola.tsv", COLA, "classify", COLA_FIELDS, [(("The sailors rode.",), "1"), (("As you eat.",), "0")]),
        ("own.tsv", "t\tl\na b\tx\n", "classify", {"text": "t", "label": "l"}, [(("a b",), "x")]),
        ("ner.conll", CONLL, "tag", {}, [(("Jim", "sleeps"), ("B-PER", "O")), (("In",), ("O",))]),
        ("ner.conll", CONLL, "tag", {"label": 2}, [(("Jim", "sleeps"), ("NNP", "VBZ")), (("In",), ("IN",))]),
        ("t.jsonl", '{"words": ["a", "b"], "tags": ["O", "O"]}\n', "tag", {}, [(("a", "b"), ("O", "O"))]),
        ("c.tsv", "premise\tchoice1\tchoice2\tlabel\na\tb\tc\t1\n", "choice", {}, [(("a", "b", "c"), 1)]),
        ("d.tsv", NOTED, "choice", {}, [(("a", "b", "c"), 1)]),
        ("c.jsonl", CHOICE, "choice", {}, [(("a", "b", "c"), 1)]),
        (
            "q.jsonl",
            '{"question": "q", "context": "a b", "answers": {"text": ["b"], "answer_start": [2]}}\n',
            "span",
            {},
            [(("q", "a b"), (AnswerSpan(2, "b"),))],
        ),
    ],
)  # fmt: skip
def test_known_layouts_are_read(
    tmp_path: Path, name: str, content: str, kind: Any, fields: dict, expected
) -> None:
    assert read(tmp_path, name, content, kind, **fields) == expected


@pytest.mark.parametrize("starts", ["[2]", "[2, 0, 0]", "[]", "null", "2", '"20"', '{"0": 2, "1": 0}'])
def test_every_answer_has_its_start(tmp_path: Path, starts: str) -> None:
    answers = f'{{"text": ["b", "a"], "answer_start": {starts}}}'
    line = f'{{"question": "q", "context": "a b", "answers": {answers}}}\n'
    with pytest.raises(UserError, match=r"q.jsonl:1: 'answers': .* as many entries in answer_start as in"):
        read(tmp_path, "q.jsonl", line, "span")


def test_squad(tmp_path: Path) -> None:
    answers = [{"text": "in Rome", "answer_start": 6}]
    paragraph = {"context": "It is in Rome.", "qas": [{"id": "7", "question": "Where?", "answers": answers}]}
    whole = json.dumps({"data": [{"paragraphs": [paragraph]}]})
    assert read(tmp_path, "q.json", whole, "span") == [
        (("Where?", "It is in Rome."), (AnswerSpan(6, "in Rome"),))
    ]
    answers[0]["answer_start"] = 5
    with pytest.raises(
        UserError, match=r"question '7': the answer 'in Rome' is not at character 5 .* ' in Rom'"
    ):
        read(tmp_path, "q.json", json.dumps({"data": [{"paragraphs": [paragraph]}]}), "span")
    with pytest.raises(UserError, match="this is not a file of questions"):
        read(tmp_path, "q.json", "{}", "span")


def test_labels_may_be_missing_where_they_are_asked_for(tmp_path: Path) -> None:
    assert read(tmp_path, "a.tsv", "one film\ntwo\n", "classify", False) == [
        (("one film",), None),
        (("two",), None),
    ]
    assert read(tmp_path, "a.conll", "Jim\nsleeps\n", "tag", False) == [(("Jim", "sleeps"), None)]
    assert read(tmp_path, "a.txt", "one film\n", "classify", False) == [(("one film",), None)]


@pytest.mark.parametrize(
    ("name", "content", "kind", "fields", "message"),
    [
        ("a.tsv", "a\t0\n\nb\t1\n", "classify", {}, r"a\.tsv:2: this line is empty; remove it"),
        ("a.tsv", "a\t0\nb\n", "classify", {}, r"a\.tsv:2: expected 2 columns as in the first line, found 1"),
        ("a.tsv", "a\t0\n \t1\n", "classify", {}, r"a\.tsv:2: '1': there is no text"),
        ("a.tsv", "a\t0\nb\t\n", "classify", {}, r"a\.tsv:2: '2': there is no label"),
        ("a.tsv", COLA, "classify", {}, r"a\.tsv:1: expected a header, or the 2 columns text, label"),
        ("a.tsv", COLA, "classify", {"text": 9, "label": 2}, r"a\.tsv:1: there is no column '9' for"),
        ("a.tsv", "a\tb\nx\ty\n", "classify", {"text": "z"}, r"there is no column 'z' for the text; there"),
        ("a.tsv", "a\tb\tx\n", "similarity", {}, r"a\.tsv:1: '3': expected a number, found 'x'"),
        ("a.jsonl", '{"text": 3, "label": 1}\n', "classify", {}, r"jsonl:1: 'text': expected text, found 3"),
        ("a.jsonl", "{\n", "classify", {}, r"a\.jsonl:1: not valid JSON"),
        ("a.conll", "Jim\tO\nsleeps\n", "tag", {}, r"a\.conll:2: expected a word and its tag, found"),
        ("a.txt", "a\nb\n", "classify", {}, r"a\.txt: plain lines have no labels"),
        ("a.txt", "a\nb\n", "pair", {}, r"a\.txt: one file, and it is not one of tsv"),
        ("a.tsv", "context\tlabel\na\t0\n", "choice", {}, r"a\.tsv:2: there is nothing to choose from"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_place(
    tmp_path: Path, name: str, content: str, kind: Any, fields: dict, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read(tmp_path, name, content, kind, **fields)


def test_labels_are_found_in_order_and_others_refused(tmp_path: Path) -> None:
    def examples(content: str, kind: Any, name: str = "a.tsv", **fields: Any):
        (tmp_path / name).write_text(content, "utf-8")
        task = TaskConfig(kind, **fields)
        return list(read_examples(SourceConfig((str(tmp_path / name),)), task)), task

    assert labels_of(*examples("a\t10\nb\t9\nc\t10\n", "classify")) == ("9", "10")
    assert labels_of(*examples("a B-x\nb O\nc I-x\n", "tag", "a.conll")) == ("O", "B-x", "I-x")
    with pytest.raises(UserError, match=r"a\.tsv:1: there are 30 labels in 30 examples, the first is 'x 0'"):
        labels_of(*examples("".join(f"a\tx {i}\n" for i in range(30)), "classify"))
    with pytest.raises(UserError, match=r"all examples have the label '1'"):
        labels_of(*examples("a\t1\nb\t1\n", "classify"))
    found, task = examples("a\t1\nb\t2\n", "classify", labels=("1", "3"))
    with pytest.raises(
        UserError, match=r"a\.tsv:2: the label '2' is not one of those that training has: 1, 3"
    ):
        list(check_targets(found, task))
    found, task = examples("a\tb\t7\n", "similarity", scores=(0.0, 5.0))
    with pytest.raises(UserError, match=r"a\.tsv:1: the score 7 is not between 0 and 5"):
        list(check_targets(found, task))
    found, task = examples("context\tchoice1\tchoice2\tlabel\na\tb\tc\t2\n", "choice")
    with pytest.raises(
        UserError, match=r"a\.tsv:2: the right choice is number 2, counted from 0, and there are 2"
    ):
        list(check_targets(found, task))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "span", "labels": ("a",)}, "labels: the task span has none"),
        ({"kind": "classify", "labels": ("a", "a")}, "labels: 'a' stands there more than once"),
        ({"kind": "similarity", "scores": (2.0, 1.0)}, "scores: expected the lowest and the highest"),
        ({"kind": "classify", "both_orders": True}, "both_orders: the task classify has no two orders"),
        ({"kind": "classify", "max_length": 2}, "max_length: expected a whole number of at least 8"),
        ({"kind": "span", "overlap": 99}, "overlap: expected a number from 0 to half of max_length"),
        ({"kind": "classify", "text": 0}, "text: columns are counted from 1, found 0"),
    ],
)
def test_a_task_that_cannot_be_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        TaskConfig(**fields)
