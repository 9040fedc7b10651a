"""Sentences with those before them: where documents end, what is learnt together, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman.config import to_dict
from dragoman.data.boundaries import ends_document
from dragoman.data.config import DataConfig, SourceConfig
from dragoman.data.contexts import Contexts, in_their_documents, sources_in_context
from dragoman.data.corpus import Prepared, prepare
from dragoman.data.documents.translate import translate_units
from dragoman.data.documents.unit import Unit
from dragoman.data.formats import Pair, read_pairs
from dragoman.data.prepared import verify_prepared
from dragoman.data.store import load_pairs
from dragoman.errors import UserError
from dragoman.learning import learning_of
from dragoman.learning.resolve import resolve_config
from dragoman.text.context import Boundaries, ContextConfig, fitted, in_context, in_documents
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig
from toy import toy_config, toy_pairs

DOCUMENTS = [toy_pairs(size, seed=seed) for seed, size in enumerate((3, 1, 6, 2, 9, 4, 7, 5, 8, 2))]
"""Pairs of sentences; some sentences occur in several documents."""


def written(directory: Path, documents: list[list[tuple[str, str]]], blank: str = "") -> SourceConfig:
    files = []
    for side, language in enumerate(("en", "de")):
        lines = [line for document in documents for line in (*(pair[side] for pair in document), blank)]
        path = directory / f"a.{language}"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        files.append(str(path))
    return SourceConfig(tuple(files))


def config_of(source: SourceConfig, context: dict[str, int], **more: Any) -> Any:
    plain = toy_config(source.files) | {"tokenizer": {"vocab_size": 400}}
    plain["data"] = {"train": [to_dict(source)], "context": context, "valid_size": 8}
    return resolve_config(plain | more)


def prepared_of(directory: Path, context: dict[str, int], **more: Any) -> tuple[Any, Prepared]:
    config = config_of(written(directory, DOCUMENTS), context, **more)
    made = prepare(config.data, config.tokenizer, seed=1, cache=directory / "cache")
    return config, made


@pytest.mark.parametrize(
    ("source", "target", "most"), [(1, 0, 256), (1, 1, 256), (3, 2, 256), (2, 1, 12), (2, 2, 1)]
)
def test_examples_are_the_texts_with_those_before_them(
    source: int, target: int, most: int, tmp_path: Path
) -> None:
    settings = {"source": source, "target": target, "max_tokens": most}
    config, prepared = prepared_of(tmp_path, settings)
    learning, store, context = learning_of(config), prepared.train, prepared.context
    examples = learning.examples(config, prepared)
    src, tgt = prepared.src_tokenizer, prepared.tgt_tokenizer
    assert context == ContextConfig(**settings) and store.documents is not None
    texts = [[decode(side(n).tolist()) for n in range(len(store))]
             for decode, side in ((src.decode, store.src), (tgt.decode, store.tgt))]  # fmt: skip
    shorter = 0
    for number in range(len(store)):
        first = number
        while first and number - first < source and store.documents[first - 1] == store.documents[number]:
            first -= 1
        while True:  # as many as fit, the nearest ones
            own_src = src.encode(in_context(texts[0][first:number], texts[0][number]))
            again = max(first, number - target)
            own_tgt = tgt.encode(in_context(texts[1][again:number], texts[1][number]))
            if max(len(own_src), len(own_tgt)) <= most or first == number:
                break
            first, shorter = first + 1, shorter + 1
        batch = examples.batch(np.array([number]), epoch=0)
        assert batch.src_ids[0].tolist() == [*own_src, src.eos_id]
        assert batch.tgt_out[0].tolist() == [*own_tgt, tgt.eos_id]
        assert (examples.src_lengths[number], examples.tgt_lengths[number]) == (len(own_src), len(own_tgt))
    assert bool(shorter) == (most < 256)
    batch = examples.batch(np.arange(len(store)), epoch=0)  # rows do not depend on the batch
    for number in (0, 5, len(store) - 1):
        alone = examples.batch(np.array([number]), epoch=0).src_ids[0].tolist()
        assert batch.src_ids[number][: len(alone)].tolist() == alone


def test_dropout_cuts_the_sentences_and_not_the_separators(tmp_path: Path) -> None:
    tokenizer = {"vocab_size": 400, "dropout": 0.5}
    config, prepared = prepared_of(tmp_path, {"source": 2, "target": 1}, tokenizer=tokenizer)
    examples = learning_of(config).examples(config, prepared)
    plain = learning_of(config).plain_examples(config, prepared, prepared.train)
    numbers, separator = np.arange(len(prepared.train)), prepared.src_tokenizer.separator
    rows = [each.batch(numbers, epoch=1).src_ids.tolist() for each in (examples, plain)]
    decode = prepared.src_tokenizer.decode
    assert [decode(row) for row in rows[0]] == [decode(row) for row in rows[1]] and rows[0] != rows[1]
    assert [row.count(separator) for row in rows[0]] == [row.count(separator) for row in rows[1]]


def test_whole_documents_are_held_out_and_none_of_their_sentences_is_learnt(tmp_path: Path) -> None:
    _, prepared = prepared_of(tmp_path, {"source": 1})
    learnt, held_out = (
        [prepared.src_tokenizer.decode(store.src(n).tolist()) for n in range(len(store))]
        for store in (prepared.train, prepared.valid)
    )
    assert held_out and not {*learnt} & {*held_out}
    documents = [{src for src, _ in document} for document in DOCUMENTS]
    for text in held_out:  # what else its document has is held out, or learnt from another document
        for document in (own for own in documents if text in own):
            assert document <= {*held_out} | {src for own in documents if own != document for src in own}
    assert verify_prepared(prepared.directory) == []
    places = range(len(prepared.valid))
    texts = sources_in_context(prepared, places)
    examples = load_pairs(prepared.valid, places)
    contexts = Contexts(prepared.valid, ContextConfig(), (prepared.src_tokenizer, prepared.tgt_tokenizer))
    joined = contexts.join(np.array(places), lambda numbers: load_pairs(prepared.valid, numbers))
    assert [prepared.src_tokenizer.encode(text) for text in texts] == [ids.tolist() for ids, _ in joined]
    assert [ids.tolist() for _, ids in joined] == [ids.tolist() for _, ids in examples]


def test_the_same_sentence_after_another_one_is_another_pair(tmp_path: Path) -> None:
    again = [("same .", "gleich .")]
    documents = [[pair, *again] for pair in toy_pairs(12)] * 2
    kept = {}
    for name, context in (("with", ContextConfig()), ("without", None)):
        data = DataConfig((written(tmp_path, documents),), context=context, valid_size=0)
        tokenizer = TokenizerConfig(vocab_size=400, specials=("<sep>",))
        prepared = prepare(data, tokenizer, seed=1, cache=tmp_path / name)
        texts = [
            prepared.src_tokenizer.decode(prepared.train.src(n).tolist()) for n in range(len(prepared.train))
        ]
        kept[name] = texts.count("same .")
        assert prepared.dropped["duplicate"] == 48 - len(texts)
    assert kept == {"with": len({pair[0] for pair in toy_pairs(12)}), "without": 1}


def test_what_was_prepared_without_a_context_keeps_its_name(tmp_path: Path) -> None:
    data = DataConfig((written(tmp_path, DOCUMENTS),))
    assert not {"context", "document"} & {*to_dict(data), *to_dict(data.train[0])}
    prepared = prepare(data, TokenizerConfig(vocab_size=400), seed=1, cache=tmp_path / "cache")
    assert prepared.context is None and prepared.train.documents is None
    assert "context" not in json.loads((prepared.directory / "meta.json").read_text(encoding="utf-8"))


XLIFF = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
    + "".join(
        f'<file source-language="en" target-language="de" original="{name}"><body>'
        + "".join(
            f'<trans-unit id="{n}"><source>{src}</source><target>{tgt}</target></trans-unit>'
            for n, (src, tgt) in enumerate(document)
        )
        + "</body></file>"
        for name, document in enumerate(DOCUMENTS)
    )
    + "</xliff>"
)


@pytest.mark.parametrize("form", ["plain", "xlf", "tsv", "jsonl"])
def test_readers_tell_documents_apart(form: str, tmp_path: Path) -> None:
    names = ("doc", "en", "de")
    rows = [(f"d{n}", src, tgt) for n, document in enumerate(DOCUMENTS) for src, tgt in document]
    if form == "plain":
        source = written(tmp_path, DOCUMENTS, blank="  ")
    else:
        path = tmp_path / f"a.{form}"
        lines = {
            "xlf": XLIFF,
            "tsv": "doc\ten\tde\n" + "".join("\t".join(row) + "\n" for row in rows),
            "jsonl": "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows),
        }
        path.write_text(lines[form], encoding="utf-8")
        source = SourceConfig((str(path),))
    found, boundaries = {}, Boundaries()
    for pair in read_pairs(source, "en", "de"):
        number = boundaries.number(ends_document(pair), pair.document)
        if not ends_document(pair):
            found.setdefault(number, []).append((pair.src, pair.tgt))
    assert list(found.values()) == DOCUMENTS


def test_windows_of_lines_do_not_reach_over_blank_ones() -> None:
    lines = ["a", "b", " ", "", "c", "d\ufdd0", "e"]
    assert list(in_documents(lines, 0)) == lines
    assert [text.split("\ufdd0") for text in in_documents(lines, 2)] == [
        ["a"], ["a", "b"], [" "], [""], ["c"], ["c", "d "], ["c", "d ", "e"]
    ]  # fmt: skip
    pairs = [Pair("a", "A", 1), Pair("b", "B", 2), Pair("", " ", 3), Pair("c", "C", 4)]
    both = [(("a",), ("A",)), (("a", "b"), ("A", "B")), (("c",), ("C",))]
    asked = in_their_documents(pairs, ContextConfig(source=2, target=1))
    assert [tuple(tuple(text.split("\ufdd0")) for text in pair) for pair in asked] == both
    assert len(list(in_their_documents(pairs, ContextConfig(), blank=True))) == 4
    assert list(in_their_documents(pairs, None)) == [(pair.src, pair.tgt) for pair in pairs]


def test_no_other_text_becomes_the_separator_and_openings_stay() -> None:
    texts = ["<sep> a b", "a<sep>b", "a b c"] * 3
    tokenizer = Tokenizer.train(texts, TokenizerConfig(vocab_size=300, specials=("<to:de>", "<sep>")))
    separator = tokenizer.separator
    assert separator is not None and all(separator not in tokenizer.encode(text) for text in texts)
    (opening,) = tokenizer.control_ids(("<to:de>",))
    opened = tokenizer.opened_with((opening,))
    whole = [opening, *tokenizer.encode("a b"), separator, *tokenizer.encode("c")]
    assert opened.encode("a b\ufdd0c") == whole
    assert fitted(whole, separator, 1, len(whole)) == whole
    assert fitted(whole, separator, 1, len(whole) - 1) == [opening, *tokenizer.encode("c")]
    without = Tokenizer.train(texts, TokenizerConfig(vocab_size=300))
    assert without.decode(without.encode("a\ufdd0b")) == "a\ufdd0b"


def test_units_of_a_document_are_asked_for_with_those_before_them() -> None:
    done = Unit("2", 2, "It is done.", state="done")
    units = [
        Unit("1", 1, "One. Two."),
        done,
        Unit("3", 3, "Two."),
        Unit("4", 4, "Two. "),
        Unit("5", 5, "Two."),
    ]
    asked: list[str] = []

    def shout(texts: list[str]) -> list[str]:
        asked.extend(texts)
        return [text.rpartition("\ufdd0")[2].upper() for text in texts]

    outcome = translate_units(units, shout, context=1)
    expected = [["One."], ["One.", "Two."], ["It is done.", "Two."], ["Two.", "Two."]]
    assert [text.split("\ufdd0") for text in asked] == expected
    assert outcome.texts == {0: "ONE. TWO.", 2: "TWO.", 3: "TWO. ", 4: "TWO."} and outcome.kept == 1


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"source": 0}, "source: expected at least 1 sentence before, found 0"),
        ({"source": -2}, "source: expected at least 1 sentence before, found -2"),
        ({"source": 101}, "source: expected at most 100 sentences before, found 101"),
        ({"source": 1, "target": 2}, "target: expected a number from 0 to 1"),
        ({"source": 1, "max_tokens": 0}, "max_tokens: expected at least 1"),
        ({"sentences": 2}, "sentences"),
    ],
)
def test_wrong_numbers_are_refused(context: dict[str, int], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said):
        config_of(written(tmp_path, DOCUMENTS), context)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"objective": {"invented": 1}}, "data.context: it goes neither"),
        ({"model": {"preset": "markov"}}, "data.context: a model that counts"),
        ({"task": {"kind": "classify", "labels": ["a", "b"]}}, "task learns no documents"),
    ],
)
def test_what_knows_no_context_says_so(more: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said):
        config_of(written(tmp_path, DOCUMENTS), {"source": 1}, **more)


def test_a_corpus_without_boundaries_and_a_vocabulary_without_separator_are_refused(tmp_path: Path) -> None:
    whole = written(tmp_path, [[pair for document in DOCUMENTS for pair in document]])
    lines = Path(whole.files[0]).read_text(encoding="utf-8")
    assert lines.endswith("\n\n")  # one blank line at the end says that this is one document
    tokenizer = TokenizerConfig(vocab_size=400, specials=("<sep>",))
    data = DataConfig((whole,), context=ContextConfig())
    prepared = prepare(data, tokenizer, seed=1, cache=tmp_path / "cache")
    assert prepared.train.documents is not None and not prepared.train.documents.any() and len(prepared.valid)
    for file in whole.files:
        text = Path(file).read_text(encoding="utf-8").rstrip("\n")
        Path(file).write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"a\.en: it does not tell where a document ends"):
        prepare(data, tokenizer, seed=1, cache=tmp_path / "cache")
    named = DataConfig((replace(whole, document="chapter"),), context=ContextConfig())
    with pytest.raises(UserError, match=r"document: .*a\.en has no columns, found 'chapter'"):
        prepare(named, tokenizer, seed=1, cache=tmp_path / "cache")
    other = Tokenizer.train(["a b"], TokenizerConfig(vocab_size=300))
    data = DataConfig((written(tmp_path, DOCUMENTS),), context=ContextConfig())
    with pytest.raises(UserError, match="has no piece <sep>"):
        prepare(data, tokenizer, seed=1, cache=tmp_path / "cache", given=[other])
