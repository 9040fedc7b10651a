"""The automaton that looks for phrases: its tables against a slow definition, and the steps they take."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from dragoman.errors import UserError
from dragoman.text import automaton as module
from dragoman.text.automaton import automaton
from dragoman.text.piece_bytes import symbols_of
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizer_file import TokenizerConfig
from dragoman.text.word_boundaries import is_word_character
from steps import counting, steps_of

SYMBOLS = 512


def may_begin(text: tuple[int, ...], place: int) -> bool:
    """Whether a match may begin at a place of a text that began where one may."""
    if place == 0:
        return True
    return (text[place] & 0xC0) != 0x80 and not (text[place - 1] >= 256 and text[place] >= 256)


def slow_tables(phrases: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By looking at every end of every beginning of a phrase, with every symbol behind it."""
    words = [tuple(symbols_of(phrase.encode())) for phrase in phrases]
    paths = sorted({word[:n] for word in words for n in range(1, len(word) + 1)}, key=lambda p: (len(p), p))
    number = {path: place + 2 for place, path in enumerate(paths)}
    open_ended = {word for word, phrase in zip(words, phrases, strict=True) if is_word_character(phrase[-1])}
    closed = set(words) - open_ended
    step = np.zeros((len(paths) + 2, SYMBOLS), dtype=np.int64)
    finds, holds = np.zeros(step.shape, dtype=bool), np.zeros(len(step), dtype=bool)
    for path, state in [((), 0), ((), 1), *number.items()]:
        for symbol in range(SYMBOLS):
            text = (*path, symbol)
            first = 1 if state == 1 and symbol >= 256 else 0  # inside a word none begins
            ways = (symbol, symbol + 256) if 128 <= symbol < 256 else (symbol,)
            begins = [n for n in range(first, len(text)) if may_begin(text, n)]
            matches = [(*text[n:-1], way) for n in begins for way in ways]
            known = (number[match] for match in matches if match in number)
            step[state, symbol] = next(known, int(symbol >= 256))
            finds[state, symbol] = any(match in closed for match in matches)
        holds[state] = any(path[n:] in open_ended for n in range(len(path)) if may_begin(path, n))
    finds[holds, :256] = True
    return step, finds, holds


PHRASES = [
    ["cat"],
    ["a a a", "a a", "aa", "a"],
    ["new york", "york city", "york", "new york city", "new"],
    ["лодка", "дка ло", "…", "at.", "…at.", "…."],
    ["niño", "ñ", "ñ ñ", "o ñ ñ o", "»ñ«", "»"],
    ["한국", "국 한", "日本", "本 日本 人", "، ،"],
]


@pytest.mark.parametrize("phrases", PHRASES)
def test_the_tables_are_those_of_the_definition(phrases: list[str]) -> None:
    for found, expected in zip(module._by_symbol(phrases), slow_tables(phrases), strict=False):
        np.testing.assert_array_equal(found, expected)


def test_so_are_those_of_phrases_by_chance() -> None:
    chance = random.Random(3)
    for _ in range(12):
        phrases = ["".join(chance.choices("abñ.… 국", k=chance.randint(1, 7))).strip() for _ in range(5)]
        phrases = [phrase for phrase in phrases if phrase]
        for found, expected in zip(module._by_symbol(phrases), slow_tables(phrases), strict=False):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("piece", ["word ", "a", "[", "a ", "ñ", "ab. "])
def test_a_longer_phrase_takes_steps_like_its_length(piece: str) -> None:
    with counting("dragoman.text") as load:
        by_symbol = load("dragoman.text.automaton")._by_symbol
        assert steps_of(by_symbol, [piece * 80]) <= 2.3 * steps_of(by_symbol, [piece * 40])


def test_more_than_fits_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spelling = Tokenizer.train(["the cat sat"], TokenizerConfig(vocab_size=300)).spelling
    automaton(("seven b",), spelling)
    monkeypatch.setattr(module, "_MOST_CELLS", 7 * len(spelling))
    with pytest.raises(UserError, match=r"forbidden: the phrases have 8 bytes; with .* at most 7 can"):
        automaton(("eight by",), spelling)
