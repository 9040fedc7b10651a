"""Byte-pair encoding step by step, in Python (Sennrich et al. 2016, algorithm 1).

The library tokenizers segments most text. This is the same algorithm for showing single merges, and for
BPE-dropout with a seed (Provilkov et al. 2020, algorithm 1). Tests compare the two.
"""

import hashlib
import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random

MergeRules = Mapping[tuple[int, int], tuple[int, int]]
"""(left id, right id) -> (rank, id of the merged piece); the lowest rank is merged first."""

WALL = -1
"""A symbol in no merge rule: it separates the segments of one list."""
_GONE = -2
_VARIANTS = 8
_POOLS = 4
_POOL_WORDS = 50_000


def merging(
    symbols: list[int], rules: MergeRules, rate: float = 0.0, random: Random | None = None
) -> Iterator[int]:
    """Merge `symbols` in place and yield the rank of each merge as it is made.

    Before every merge each candidate is dropped with probability `rate`. The best of the others is merged; if
    none is left the segmentation ends. Negative entries of `symbols` are not pieces.
    """
    count = len(symbols)
    before = list(range(-1, count - 1))
    after = list(range(1, count + 1))
    heap: list[tuple[int, int, int, int]] = []

    def offer(left: int) -> None:
        right = after[left]
        if right < count:
            rule = rules.get((symbols[left], symbols[right]))
            if rule is not None:
                heapq.heappush(heap, (rule[0], left, symbols[left], symbols[right]))

    for position in range(count):
        offer(position)
    left_out: list[tuple[int, int, int, int]] = []
    while heap:
        candidate = heapq.heappop(heap)
        rank, left, left_id, right_id = candidate
        right = after[left]
        if symbols[left] != left_id or right >= count or symbols[right] != right_id:
            continue  # a neighbour was merged since this was offered
        if random is not None and random.random() < rate:
            left_out.append(candidate)
            continue
        symbols[left] = rules[left_id, right_id][1]
        symbols[right] = _GONE
        after[left] = after[right]
        if after[left] < count:
            before[after[left]] = left
        for waiting in left_out:
            heapq.heappush(heap, waiting)
        left_out.clear()
        if before[left] >= 0:
            offer(before[left])
        offer(left)
        yield rank


class Speller:
    """Words -> the symbols before merging: a piece for a known character, bytes for any other."""

    def __init__(self, characters: Mapping[str, int], first_byte: int) -> None:
        self._characters = characters
        self._first_byte = first_byte

    def __call__(self, word: str) -> list[int]:
        symbols: list[int] = []
        for character in word:
            known = self._characters.get(character)
            if known is None:
                symbols.extend(self._first_byte + byte for byte in character.encode("utf-8"))
            else:
                symbols.append(known)
        return symbols


class BpeDropout:
    """BPE-dropout as a pure function of (text, rate, key).

    A word has eight segmentations under one `key[:-1]` (for example a seed and an epoch). The whole key and
    the position in the text choose one of them. They are cached, so a common word is segmented eight times an
    epoch.
    """

    def __init__(self, segments: re.Pattern[str], spell: Speller, rules: MergeRules) -> None:
        self._segments = segments
        self._spell = spell
        self._rules = rules
        self._pools: dict[tuple[float, tuple[int, ...]], list[dict[str, Sequence[int]]]] = {}

    def __call__(self, text: str, rate: float, key: tuple[int, ...]) -> list[int]:
        shared = key[:-1]
        pool = self._pool(rate, shared)
        words = self._segments.findall(text)
        choices = hashlib.shake_128(repr(key).encode()).digest(len(words))
        ids: list[int] = []
        for word, choice in zip(words, choices, strict=True):
            variant = choice % _VARIANTS
            known = pool[variant].get(word)
            if known is None:
                known = self._segment(word, rate, shared, variant)
                if len(pool[variant]) < _POOL_WORDS:  # common words come early; rare ones need no memory
                    pool[variant][word] = known
            ids += known
        return ids

    def _pool(self, rate: float, shared: tuple[int, ...]) -> list[dict[str, Sequence[int]]]:
        pool = self._pools.get((rate, shared))
        if pool is None:
            if len(self._pools) >= _POOLS:
                self._pools = dict(list(self._pools.items())[1 - _POOLS :])
            pool = self._pools[rate, shared] = [{} for _ in range(_VARIANTS)]
        return pool

    def _segment(self, word: str, rate: float, shared: tuple[int, ...], variant: int) -> Sequence[int]:
        name = f"{shared} {variant} {word}".encode()
        seed = int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "little")
        symbols = self._spell(word)
        for _ in merging(symbols, self._rules, rate, Random(seed)):
            pass
        return tuple(symbol for symbol in symbols if symbol >= 0)
