"""The file: equal bytes, equal tokenizers, and no damage that goes unseen."""

import hashlib
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import to_dict
from dragoman.errors import UserError
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig


def sealed(content: dict[str, Any]) -> bytes:
    """The bytes of a file with this content and the checksum that belongs to it."""

    def dump(value: dict[str, Any]) -> bytes:
        return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "surrogatepass")

    content = {key: value for key, value in content.items() if key != "checksum"}
    return dump(content | {"checksum": hashlib.sha256(dump(content)).hexdigest()})


@pytest.fixture
def saved(grid: dict[str, Tokenizer], tmp_path: Path) -> Path:
    path = tmp_path / "tokenizer.json"
    grid["bpe-start-punctuation-digits"].save(path)
    return path


def test_saved_and_loaded_is_the_same(grid: dict[str, Tokenizer], corpus, tmp_path: Path):
    path = tmp_path / "tokenizer.json"
    for tokenizer in grid.values():
        tokenizer.save(path)
        data = path.read_bytes()
        loaded = Tokenizer.load(path)
        assert loaded.sha256 == tokenizer.sha256 == hashlib.sha256(data).hexdigest()
        assert (loaded.config, loaded.kind, loaded.size) == (tokenizer.config, tokenizer.kind, tokenizer.size)
        texts = [*corpus, "▁ </s> \u2028 船👍", ""]
        assert loaded.encode_batch(texts) == tokenizer.encode_batch(texts)
        assert loaded.encode_dropout(corpus[0], 0.5, (1, 2)) == tokenizer.encode_dropout(
            corpus[0], 0.5, (1, 2)
        )
        loaded.save(path)
        assert path.read_bytes() == data
    assert len({tokenizer.sha256 for tokenizer in grid.values()}) == len(grid)


def test_the_file_can_be_read_by_a_person(saved: Path, grid: dict[str, Tokenizer]):
    content = json.loads(saved.read_text(encoding="utf-8"))
    assert list(content) == ["format", "version", "config", "pieces", "merges", "checksum"]
    assert content["config"] == to_dict(grid["bpe-start-punctuation-digits"].config)
    assert content["pieces"][:4] == ["<pad>", "<s>", "</s>", "<2de>"]
    assert sealed(content) == saved.read_bytes()


def test_saving_is_atomic(saved: Path, grid: dict[str, Tokenizer], monkeypatch):
    before = saved.read_bytes()

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(UserError, match=rf"{saved.name}: cannot be written \(No space"):
        grid["char"].save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_files_that_are_no_tokenizers_are_refused_by_name(tmp_path: Path, monkeypatch):
    path = tmp_path / "tokenizer.json"
    with pytest.raises(UserError, match=r"tokenizer\.json: there is no such file"):
        Tokenizer.load(path)
    with pytest.raises(UserError, match="this is a directory, not a file"):
        Tokenizer.load(tmp_path)
    contents = [
        b"",
        b"\x00\xff",
        b"{",
        b"[" * 100_000,
        b"[]",
        b"1",
        b"null",
        b"{}",
        b'{"format": 1}',
        b'"\\ud800"',
    ]
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"tokenizer\.json: not a"):
            Tokenizer.load(path)
    monkeypatch.setattr("dragoman.text.tokenizer_file.LARGEST_FILE", 100)
    path.write_bytes(b" " * 101)
    with pytest.raises(UserError, match=r"tokenizer\.json: too large: 101 bytes"):
        Tokenizer.load(path)


def test_no_flipped_bit_and_no_cut_goes_unseen(saved: Path):
    data = saved.read_bytes()
    rng = random.Random(0)
    for _ in range(400):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        saved.write_bytes(damaged)
        with pytest.raises(UserError, match=r"tokenizer\.json: not a"):
            Tokenizer.load(saved)
    for length in [*rng.sample(range(len(data)), 30), len(data) - 1]:
        saved.write_bytes(data[:length])
        with pytest.raises(UserError, match=r"tokenizer\.json: not a"):
            Tokenizer.load(saved)
    saved.write_bytes(data + b"\n")
    with pytest.raises(UserError, match="do not match its checksum"):
        Tokenizer.load(saved)


FIRST = 4 + 256  # the fixture has one special piece


def put(field: str, place: int, value: object) -> Callable[[dict], object]:
    return lambda content: content[field].__setitem__(place, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(format="other"), "does not say that its format"),
        (lambda c: c.update(version=2), "its version is 2, and this dragoman reads version 1"),
        (lambda c: c.update(extra=1), "expected the fields"),
        (lambda c: c.pop("merges"), "expected the fields"),
        (lambda c: c.update(config=[]), "config: expected a mapping"),
        (lambda c: c["config"].update(colour="red"), "config.colour: unknown field"),
        (lambda c: c["config"].update(vocab_size="many"), "config.vocab_size: expected a whole number"),
        (lambda c: c["config"].update(vocab_size=270), "pieces: .* more than config.vocab_size = 270"),
        (lambda c: c["config"].update(kind="sentence"), "config.kind: expected one of"),
        (lambda c: c["config"].update(kind="char"), "kind char has pieces of one character only"),
        (lambda c: c["config"].update(kind="byte"), "kind byte has no further pieces"),
        (lambda c: c["config"].update(kind="word"), "merges: kind word has none"),
        (lambda c: c["config"].update(specials=[]), r"pieces\[3\]: expected '<0x00>'"),
        (lambda c: c.update(pieces={}), "pieces: expected a list"),
        (lambda c: c.update(pieces=[]), r"pieces\[0\]: expected '<pad>'"),
        (lambda c: c.update(merges="a b"), "merges: expected a list"),
        (put("pieces", 0, "<PAD>"), r"pieces\[0\]: expected '<pad>'"),
        (put("pieces", 70, "<0xZZ>"), r"pieces\[70\]: expected '<0x42>'"),
        (put("pieces", 300, 7), r"pieces\[300\]: expected text, found 7"),
        (put("pieces", 300, ""), r"pieces\[300\]: expected text, found ''"),
        (put("pieces", 300, None), r"pieces\[300\]: expected text, found None"),
        (put("pieces", 300, "\ud800"), r"pieces\[300\]: .* lone surrogate"),
        (put("pieces", FIRST, "ß"), r"pieces\[260\]: expected the space mark"),
        (put("pieces", -1, "▁t"), r"is also the piece of id"),
        (put("pieces", -1, "a b"), "holds a character that no piece may hold"),
        (put("pieces", -1, "a<b"), "holds a character that no piece may hold"),
        (put("pieces", -1, "</s>"), "is also the piece of id 2"),
        (put("pieces", -1, "\u1234"), "is a single character after the alphabet"),
        (put("pieces", -1, "zzz"), "is not a piece"),
        (lambda c: c["pieces"].pop(), "is not a piece"),
        (lambda c: c["pieces"].remove("e"), "is not a piece"),
        (lambda c: c["pieces"].append("zzz"), "expected what the merges make"),
        (lambda c: c["pieces"].insert(-1, c["pieces"].pop()), "expected what the merges make"),
        (lambda c: c["merges"].pop(), "expected what the merges make"),
        (lambda c: c["merges"].append(c["merges"][0]), "the same merge is there twice"),
        (put("merges", 0, "zzz e"), r"merges\[0\]: 'zzz' is not a piece"),
        (put("merges", 0, "▁ ▁"), r"merges\[0\]: '▁▁' is not a piece"),
        (put("merges", 0, "<s> e"), r"merges\[0\]: '<s>' is not a piece"),
        (put("merges", 0, "<0x41> <0x42>"), r"merges\[0\]: '<0x41>' is not a piece"),
        (put("merges", 0, "ab"), r"merges\[0\]: expected two pieces"),
        (put("merges", 0, "a b c"), r"merges\[0\]: expected two pieces"),
        (put("merges", 0, " b"), r"merges\[0\]: expected two pieces"),
        (put("merges", 0, ["a", "b"]), r"merges\[0\]: expected text"),
    ],
)
def test_contradictions_are_refused_even_with_a_right_checksum(saved: Path, change: Callable, message: str):
    content = json.loads(saved.read_text(encoding="utf-8"))
    content["config"]["vocab_size"] += 10
    change(content)
    saved.write_bytes(sealed(content))
    with pytest.raises(UserError, match=message) as caught:
        Tokenizer.load(saved)
    assert str(caught.value).startswith(f"{saved}: ")
    assert "\n" not in str(caught.value)


def test_a_file_written_in_another_way_is_refused(saved: Path):
    content = json.loads(saved.read_text(encoding="utf-8"))
    for data in (
        json.dumps(content),
        json.dumps(content | {"checksum": "0" * 64}, ensure_ascii=False, indent=1),
    ):
        saved.write_text(data, encoding="utf-8")
        with pytest.raises(UserError, match="do not match its checksum"):
            Tokenizer.load(saved)


def test_the_options_come_back(tmp_path: Path):
    config = TokenizerConfig(
        vocab_size=300, joint=False, min_frequency=1, word_mark="end", split_digits=False, dropout=0.25,
        specials=("<2de>", "<2fr>"),
    )  # fmt: skip
    tokenizer = Tokenizer.train(["some text"], config)
    tokenizer.save(tmp_path / "t.json")
    assert Tokenizer.load(tmp_path / "t.json").config == config
