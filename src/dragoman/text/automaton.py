"""An automaton that reads pieces and finds phrases as whole words.

Aho and Corasick (1975) over bytes, with two changes. A match begins only where a word may begin. If a phrase
ends in a word character, the match is held until the next byte shows that the word has ended. The step of a
piece is the composition of the steps of its bytes, so the segmentation of a text does not matter.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dragoman.text.spelling import Spelling, symbols_of
from dragoman.text.word_boundaries import is_word_character

_START, _IN_WORD = 0, 1  # no match has begun; none can begin after a word character
_SYMBOLS = 512


@dataclass(frozen=True)
class Automaton:
    """Tables over states and pieces. State 0 is the initial one."""

    after: np.ndarray
    """Z V: the state that a piece leads to."""
    finds: np.ndarray
    """Z V: whether a phrase is complete once the piece has been read."""
    holds: np.ndarray
    """Z: whether a phrase is complete if the text ends here."""
    memory: int
    """The state depends only on this many last pieces, if none of them is empty."""


@functools.lru_cache(maxsize=8)
def automaton(phrases: tuple[str, ...], spelling: Spelling) -> Automaton:
    """The tables for some phrases; cached, since many batches need the same."""
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
    """The same for phrases that are forbidden: `finds` is what must not be read. That includes `</s>` while a
    phrase is held, and pieces that write nothing, which would separate neighbours."""
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
            first = 1 if state == _IN_WORD and symbol >= 256 else 0  # inside a word no match begins
            ways = (symbol, symbol + 256) if 128 <= symbol < 256 else (symbol,)  # a byte of any character
            begins = [n for n in range(first, len(text)) if _may_begin(text, n)]
            matches = [(*text[n:-1], way) for n in begins for way in ways]
            step[state, symbol] = next(
                (number[match] for match in matches if match in number), _IN_WORD if symbol >= 256 else _START
            )
            finds[state, symbol] = any(match in closed for match in matches)
        holds[state] = any(path[n:] in open_ended for n in range(len(path)) if _may_begin(path, n))
    # A held phrase is complete at any byte that does not continue a word. A continuation byte after a whole
    # character is not valid UTF-8, and decodes to a character outside words.
    finds[holds, :256] = True
    return step, finds, holds, max(map(len, words))


def _may_begin(text: tuple[int, ...], place: int) -> bool:
    """Whether a match may begin at `place` of a text that itself begins at such a place."""
    if place == 0:
        return True
    return (text[place] & 0xC0) != 0x80 and not (text[place - 1] >= 256 and text[place] >= 256)
