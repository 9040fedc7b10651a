"""Our merges as a SentencePiece model: its file, and which texts it cuts alike.

The library itself, where it is installed, is the judge.
"""

import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.errors import UserError
from dragoman.text.sentencepiece_model import SentencePieceRules, sentencepiece_model
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

TEXTS = [
    "The cat sat on the mat, and the dog sat by the door.",
    "Der größte Hund saß vor der Tür: 12 Katzen, 345 Mäuse!",
    "the theatre then there these thesis other mother brother",
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS * 3, TokenizerConfig(vocab_size=420, min_frequency=1, specials=("<2de>",)))


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """A protocol buffer, as its own documentation describes it."""

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    at = 0
    while at < len(data):
        tag = number()
        if tag & 7 == 0:
            yield tag >> 3, number()
        else:
            size = 4 if tag & 7 == 5 else number()
            yield tag >> 3, data[at : at + size]
            at += size


def test_the_file_has_our_pieces_with_our_numbers(tokenizer: Tokenizer) -> None:
    parts = list(fields(sentencepiece_model(tokenizer)))
    own = [dict(fields(value)) for field, value in parts if field == 1 and isinstance(value, bytes)]
    pieces = [(bytes(one[1]).decode(), struct.unpack("<f", bytes(one[2]))[0], one[3]) for one in own]  # type: ignore[arg-type]
    assert [text for text, _, _ in pieces] == tokenizer.pieces(range(tokenizer.size))
    trainer = dict(fields(bytes(next(value for field, value in parts if field == 2))))  # type: ignore[arg-type]
    assert (trainer[3], trainer[35], trainer[40], trainer[42], trainer[43]) == (2, 1, 1, 2, 0)
    kinds = [kind for _, _, kind in pieces]
    assert kinds[:4] == [3, 2, 3, 3] and kinds[4:260] == [6] * 256 and set(kinds[260:]) == {1}
    ranks = {merged: rank for rank, merged in tokenizer.merge_rules.values()}
    assert all(pieces[merged][1] == -rank for merged, rank in ranks.items())


def test_other_kinds_are_refused() -> None:
    for config in (
        TokenizerConfig(kind="char", vocab_size=400),
        TokenizerConfig(vocab_size=400, word_mark="end"),
    ):
        with pytest.raises(UserError, match="only our own kind bpe"):
            sentencepiece_model(Tokenizer.train(TEXTS, config))


def test_which_texts_are_cut_alike(tokenizer: Tokenizer) -> None:
    rules = SentencePieceRules(tokenizer)
    assert all(rules.cut_alike(text) for text in [*TEXTS, "", "zwei  Leerzeichen ", "日本 😀", "<2de> </s>"])
    assert not rules.cut_alike("a ▁ mark") and not rules.cut_alike("e\u0301")


def test_the_library_agrees(tokenizer: Tokenizer, tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    (tmp_path / "m.model").write_bytes(sentencepiece_model(tokenizer))
    library = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    chosen, rules = random.Random(3), SentencePieceRules(tokenizer)
    for _ in range(300):
        text = "".join(chosen.choice("theatrnodscmby ,.12ßü日") for _ in range(30))
        assert (library.encode(text) == tokenizer.encode(text)) == rules.cut_alike(text), text
        assert library.decode(tokenizer.encode(text)) == text
