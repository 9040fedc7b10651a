"""An automaton that reads text in pieces and knows when it holds one of some phrases as whole words.

Aho and Corasick (1975) over bytes, with two changes. A match begins only where a word may begin, and where a
phrase ends in a word character the match is held until what follows shows that the word has ended. Reading
whole pieces is composing the steps of their bytes, so it does not matter how a text is cut into pieces.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dragoman.text.spelling import Spelling, symbols_of
from dragoman.text.word_boundaries import is_word_character

_START, _IN_WORD = 0, 1  # no match has begun; a word character came last, so that none can begin now
_SYMBOLS = 512


@dataclass(frozen=True)
class Automaton:
    """Tables over states and pieces. Reading begins in state 0."""

    after: np.ndarray
    """Z V: the state that a piece leads to."""
    finds: np.ndarray
    """Z V: whether a phrase is there for certain when the piece has been read."""
    holds: np.ndarray
    """Z: whether a phrase is there if the text ends here."""
    memory: int
    """The state depends on the last so many pieces alone, if none of them is empty."""


@functools.lru_cache(maxsize=8)
def automaton(phrases: tuple[str, ...], spelling: Spelling) -> Automaton:
    """The tables for some phrases; kept, since batch after batch asks for the same."""
    step, finds, holds, deepest = _by_symbol(phrases)
    symbols = spelling.symbols
    states = np.repeat(np.arange(len(step))[:, None], len(symbols), axis=1)  # Z V
    found = np.zeros(states.shape, dtype=bool)
    for column in symbols.T:
        read = np.flatnonzero(column >= 0)
        now = states[:, read]
        found[:, read] |= finds[now, column[read]]
        states[:, read] = step[now, column[read]]
    return Automaton(states.astype(np.int32), found, holds, deepest + 2)


@functools.lru_cache(maxsize=8)
def forbidding(phrases: tuple[str, ...], spelling: Spelling, eos_id: int) -> Automaton:
    """The same where the phrases may not come: `finds` is what may not be read. That is also `</s>` where a
    phrase is held, and pieces that write nothing: they would hide what stands side by side."""
    read = automaton(phrases, spelling)
    banned = read.finds | (spelling.widths == 0)
    banned[:, eos_id] = read.holds
    return replace(read, finds=banned)


def _by_symbol(phrases: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """The same tables over single bytes (see `Spelling.symbols`)."""
    words = [tuple(symbols_of(phrase.encode("utf-8"))) for phrase in phrases]
    paths = sorted({word[:n] for word in words for n in range(1, len(word) + 1)}, key=lambda p: (len(p), p))
    number = {path: place + 2 for place, path in enumerate(paths)}
    open_ended = {word for word, phrase in zip(words, phrases, strict=True) if is_word_character(phrase[-1])}
    closed = set(words) - open_ended
    step = np.zeros((len(paths) + 2, _SYMBOLS), dtype=np.int64)
    finds = np.zeros(step.shape, dtype=bool)
    holds = np.zeros(len(step), dtype=bool)
    for path, state in [((), _START), ((), _IN_WORD), *number.items()]:
        for symbol in range(_SYMBOLS):
            text = (*path, symbol)
            first = 1 if state == _IN_WORD and symbol >= 256 else 0  # it goes on with a word: no beginning
            ways = (symbol, symbol + 256) if 128 <= symbol < 256 else (symbol,)  # a byte of any character
            begins = [n for n in range(first, len(text)) if _may_begin(text, n)]
            matches = [(*text[n:-1], way) for n in begins for way in ways]
            step[state, symbol] = next(
                (number[match] for match in matches if match in number), _IN_WORD if symbol >= 256 else _START
            )
            finds[state, symbol] = any(match in closed for match in matches)
        holds[state] = any(path[n:] in open_ended for n in range(len(path)) if _may_begin(path, n))
    # What follows a held phrase: any byte that does not go on with a word. A continuation byte after a whole
    # character is no text, and decodes to a character of no word.
    finds[holds, :256] = True
    return step, finds, holds, max(map(len, words))


def _may_begin(text: tuple[int, ...], place: int) -> bool:
    """Whether a match may begin at `place` of a match's text; the text itself began at such a place."""
    if place == 0:
        return True
    return (text[place] & 0xC0) != 0x80 and not (text[place - 1] >= 256 and text[place] >= 256)
