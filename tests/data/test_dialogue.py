"""Dialogues become pairs of the turns before a reply and the reply."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.config import from_dict, to_dict
from dragoman.data.config import DataConfig, SourceConfig
from dragoman.data.fingerprint import fingerprint
from dragoman.data.formats import detect_format, read_pairs
from dragoman.errors import UserError
from dragoman.text.tokenizer import TokenizerConfig

LINES = "a . __eou__ b ? __eou__ c ! __eou__\nalone __eou__\n\nx __eou__  __eou__ y __eou__ z __eou__ w\n"
TURNS = [["a .", "b ?", "c !"], ["alone"], [], ["x", "y", "z", "w"]]


def write(path: Path, text: str) -> str:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


@pytest.mark.parametrize("turns", [1, 2, 5])
def test_every_turn_but_the_first_is_a_reply(tmp_path: Path, turns: int) -> None:
    as_json = "".join(json.dumps({"turns": own}) + "\n" for own in TURNS)
    expected = [
        (" ‖ ".join(own[max(0, place - turns) : place]), own[place], number)
        for number, own in enumerate(TURNS, start=1)
        for place in range(1, len(own))
    ]
    for name, text in (("a.dialogues.gz", LINES), ("b.txt", LINES), ("c.jsonl", as_json)):
        source = SourceConfig((write(tmp_path / name, text),), turns=turns)
        assert detect_format(source.files) == "dialogue"
        pairs = list(read_pairs(source, "src", "tgt"))
        assert [(pair.src, pair.tgt, pair.line) for pair in pairs if pair.src] == expected
        assert [pair.line for pair in pairs if not pair.src] == [2, 3]


def test_speakers_are_written_before_their_turns(tmp_path: Path) -> None:
    turns = [{"speaker": "Ann", "text": "Hi ."}, {"text": "Hello ."}, "Bye ."]
    path = write(tmp_path / "a.jsonl", json.dumps({"turns": turns}))
    pairs = [(pair.src, pair.tgt) for pair in read_pairs(SourceConfig((path,)), "src", "tgt")]
    assert pairs == [("Ann: Hi .", "Hello ."), ("Ann: Hi . ‖ Hello .", "Bye .")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"turns": "a"}', "expected a list of turns in the field 'turns'"),
        ('{"turns": ["a", 3]}', "expected text in 'turns', found int"),
        ('{"turns": [{"speaker": "A"}]}', "expected text in 'text', found null"),
        ('{"turns": ["a"', "not valid JSON"),
    ],
)
def test_what_is_no_dialogue_is_told_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    path = write(tmp_path / "a.jsonl", f'{{"turns": ["a", "b"]}}\n{line}\n')
    with pytest.raises(UserError, match=rf"a\.jsonl:2: {said}"):
        list(read_pairs(SourceConfig((path,)), "src", "tgt"))


def test_the_number_of_turns_belongs_to_the_data(tmp_path: Path) -> None:
    source = SourceConfig((write(tmp_path / "a.dialogues", LINES),))
    data = DataConfig((source,), valid=(source,), turns=2)
    assert data.train[0].turns == data.valid[0].turns == 2
    assert from_dict(DataConfig, to_dict(data)) == data
    names = [
        fingerprint(DataConfig((replace(source, turns=turns),)), TokenizerConfig(), 1, lambda *_: None)[0]
        for turns in (2, 3)
    ]
    assert names[0] != names[1]
    with pytest.raises(UserError, match="turns"):
        replace(source, turns=0)
