"""An automaton that reads pieces and finds phrases as whole words.

Aho and Corasick (1975) over bytes, with two changes. A match begins only where a word may begin. If a phrase
ends in a word character, the match is held until the next byte shows that the word has ended. The step of a
piece is the composition of the steps of its bytes, so the segmentation of a text does not matter.
"""

import functools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dragoman.errors import UserError
from dragoman.text.piece_bytes import Spelling, symbols_of
from dragoman.text.word_boundaries import is_word_character

_START, _IN_WORD = 0, 1  # no match has begun; none can begin after a word character
_SYMBOLS = 512
_MOST_CELLS = 1 << 28
"""Maximum number of cells of a table: 1.3 GB."""
_ROWS = 256
"""Rows of a table that are computed at once."""


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
    """The tables for some phrases; kept, since batch after batch asks for the same."""
    letters = sum(len(phrase.encode("utf-8")) for phrase in phrases)
    if letters * len(spelling) > _MOST_CELLS:
        most = _MOST_CELLS // len(spelling)
        raise UserError(
            f"forbidden: the phrases have {letters:,} bytes; with {len(spelling):,} pieces at most {most:,} "
            "can be watched for"
        )
    step, finds, holds, deepest = _by_symbol(phrases)
    symbols = spelling.symbols
    states = np.repeat(np.arange(len(step), dtype=np.int32)[:, None], len(symbols), axis=1)  # Z V
    found = np.zeros(states.shape, dtype=bool)
    for column in symbols.T:
        read = np.flatnonzero(column >= 0)
        for begin in range(0, len(step), _ROWS):
            rows = slice(begin, begin + _ROWS)
            now = states[rows, read]
            found[rows, read] |= finds[now, column[read]]
            states[rows, read] = step[now, column[read]]
    return Automaton(states, found, holds, deepest + 2)


@functools.lru_cache(maxsize=8)
def forbidding(phrases: tuple[str, ...], spelling: Spelling, eos_id: int) -> Automaton:
    """The same for phrases that are forbidden: `finds` is what must not be read. That includes `</s>` while a
    phrase is held, and pieces that write nothing, which would separate neighbours."""
    read = automaton(phrases, spelling)
    banned = read.finds | (spelling.widths == 0)
    banned[:, eos_id] = read.holds
    return replace(read, finds=banned)


@dataclass(frozen=True)
class _Trie:
    """The beginnings of all phrases, the shorter ones first. Number 0 is the empty one."""

    children: list[dict[int, int]]
    last: list[int]
    """The symbol that each of them ends in."""
    shorter: list[int]
    """The longest suffix that is also a prefix and begins where a word may begin. 0 if there is none."""
    depth: int


def _trie(words: Collection[tuple[int, ...]]) -> _Trie:
    children: list[dict[int, int]] = [{}]
    last, shorter = [-1], [0]
    level: dict[int, list[tuple[int, ...]]] = {0: sorted(set(words))}
    depth = 0
    while level := _longer(level, depth, children, last, shorter):
        depth += 1
    return _Trie(children, last, shorter, depth)


def _longer(
    level: dict[int, list[tuple[int, ...]]],
    depth: int,
    children: list[dict[int, int]],
    last: list[int],
    shorter: list[int],
) -> dict[int, list[tuple[int, ...]]]:
    """One symbol more: the new beginnings, each with the phrases that go on behind it."""
    found: dict[int, list[tuple[int, ...]]] = {}
    for node, words in level.items():
        for word in words:
            symbol = word[depth]
            if symbol not in children[node]:
                children[node][symbol] = len(children)
                shorter.append(_end(node, symbol, children, last, shorter))
                children.append({})
                last.append(symbol)
            if len(word) > depth + 1:
                found.setdefault(children[node][symbol], []).append(word)
    return found


def _end(node: int, symbol: int, children: list[dict[int, int]], last: list[int], shorter: list[int]) -> int:
    if not node:
        return 0
    end = shorter[node]
    while end and symbol not in children[end]:
        end = shorter[end]
    if end:
        return children[end][symbol]
    return children[0].get(symbol, 0) if _may_begin(last[node], symbol) else 0


def _by_symbol(phrases: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """The same tables over single bytes (see `Spelling.symbols`). What a state does not know itself it does
    as the longest shorter one does."""
    words = [tuple(symbols_of(phrase.encode("utf-8"))) for phrase in phrases]
    trie = _trie(words)
    open_ended, closed = set[int](), set[int]()
    for word, phrase in zip(words, phrases, strict=True):
        node = functools.reduce(lambda node, symbol: trie.children[node][symbol], word, 0)
        (open_ended if is_word_character(phrase[-1]) else closed).add(node)
    size = len(trie.children) + 1  # the empty beginning is two states
    step = np.full((size, _SYMBOLS), _START, dtype=np.int32)
    step[:2, 256:] = _IN_WORD
    finds = np.zeros(step.shape, dtype=bool)
    holds = np.zeros(size, dtype=bool)
    for state in range(size):
        node = max(0, state - 1)
        if node:
            shorter = trie.shorter[node] + 1 if trie.shorter[node] else int(trie.last[node] >= 256)
            step[state], finds[state], holds[state] = step[shorter], finds[shorter], holds[shorter]
            holds[state] |= node in open_ended
        for symbol, child in sorted(trie.children[node].items(), reverse=True):
            # The bytes of a word may also be read one by one, when nobody knows their character yet.
            for read in (symbol, symbol - 256) if symbol >= 384 else (symbol,):
                if state != _IN_WORD or read < 256:
                    step[state, read] = child + 1
                    finds[state, read] |= child in closed
    # What follows a held phrase: any byte that does not go on with a word. A continuation byte after a whole
    # character is no text, and decodes to a character of no word.
    finds[holds, :256] = True
    return step, finds, holds, trie.depth


def _may_begin(before: int, symbol: int) -> bool:
    """Whether a match may begin with a symbol behind another one."""
    return (symbol & 0xC0) != 0x80 and not (before >= 256 and symbol >= 256)
