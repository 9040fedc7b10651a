"""Text piece by piece is the text at once; every piece knows where it stands."""

import random

import pytest

from dragoman.text.incremental import IncrementalDecoder, offsets
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig
from dragoman.text.tokenizer_file import MarkPlace, TokenizerKind
from dragoman.text.word_boundaries import units, words

TEXTS = [
    "the cat sat on the mat, the cat!",
    "naïve café 五 🙂 e\u0301 שלום",
    "  two  spaces ",
    "the then them " * 5,
]


@pytest.fixture(
    scope="module",
    params=[("bpe", "start"), ("bpe", "end"), ("word", "start"), ("char", "start"), ("byte", "end")],
)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    kind: TokenizerKind
    mark: MarkPlace
    kind, mark = request.param
    return Tokenizer.train(TEXTS, TokenizerConfig(kind=kind, vocab_size=320, word_mark=mark))


def test_the_parts_make_up_the_text(tokenizer: Tokenizer) -> None:
    chance = random.Random(0)
    rows = [tokenizer.encode(text) for text in TEXTS]
    rows += [chance.choices(range(-1, tokenizer.size + 1), k=chance.randint(0, 30)) for _ in range(300)]
    for ids in rows:
        decoder = IncrementalDecoder(tokenizer)
        parts = [decoder.push(piece) for piece in ids] + [decoder.finish()]
        assert "".join(parts) == tokenizer.decode(ids)


def test_pieces_stand_where_their_characters_are(tokenizer: Tokenizer) -> None:
    for text in TEXTS:
        ids = tokenizer.encode(text)
        whole, places = tokenizer.decode(ids), offsets(tokenizer, ids)
        covered = {place for start, end in places for place in range(start, end)}
        assert covered >= {place for place, char in enumerate(whole) if char != " "}
        for piece, (start, end) in zip(tokenizer.pieces(ids), places, strict=True):
            if not piece.startswith("<0x"):
                assert whole[start:end] == piece.replace("▁", " ").strip(" ")


def test_words_and_units() -> None:
    text = " one two,(three)\tdon't  e\u0301. "
    assert [text[a:b] for a, b in words(text)] == ["one", "two,(three)", "don't", "e\u0301."]
    assert [text[a:b] for a, b in units(text)] == [
        "one", "two", ",", "(", "three", ")", "don", "'", "t", "e\u0301", ".",
    ]  # fmt: skip
    assert words("") == units("  ") == []
