"""Scores whether two sentences match, by a word translation table trained on the corpus.

    gain(word)  = log [ (1 − ε) · mean_i θ(word | given_i) / p(word) + ε ]
    score(pair) = Σ over the words of both sides  gain(word) / √words

θ is the table of the word aligner (`alignment/model.py`), in the direction of the word. Words are cut after
five letters, which joins most inflected forms. A pair is never scored by a table trained on it: there are two
tables, and a hash of the pair decides which of them it is used to train.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from zlib import crc32

import numpy as np

from dragoman.data.alignment.model import Direction, make_blocks
from dragoman.text.word_boundaries import units

_STEM = 5
_MIXED = 0.1
"""ε: the weight of a word's own frequency."""
_ITERATIONS = 3
_MOST_WORDS = 60
"""Largest number of words of a sentence that are used. More would add nothing."""
_SAME = 3.0
"""Score of a word that is in neither table but occurs on both sides: a name or a number."""

LexiconRow = tuple[list[str], list[str]]


def word_stems(text: str) -> list[str]:
    lowered = text.casefold()
    found = (lowered[start:end] for start, end in units(lowered))
    return [word[:_STEM] for word in found if any(map(str.isalnum, word))][:_MOST_WORDS]


@dataclass(frozen=True)
class _Table:
    """θ in one direction. Keys are  given · width + generated, sorted."""

    keys: np.ndarray
    values: np.ndarray
    shares: np.ndarray
    """p of every generated word."""

    def scores(self, given: list[list[int]], generated: list[list[int]]) -> np.ndarray:
        """The sum of gains over the words of each sentence. Unknown words (−1) contribute nothing."""
        if not len(self.keys):
            return np.zeros(len(given))
        both = zip(given, generated, strict=True)
        sizes = np.array([(len(one), len(other)) for one, other in both], dtype=np.int64).reshape(-1, 2)
        cells = sizes[:, 0] * sizes[:, 1]
        words = np.array(list(chain.from_iterable(generated)), dtype=np.int64)
        of_pair = np.repeat(np.arange(len(given)), sizes[:, 1])
        wide = sizes[of_pair, 0]
        starts = np.cumsum(sizes[:, 0]) - sizes[:, 0]
        others = np.array(list(chain.from_iterable(given)), dtype=np.int64)
        word_of = np.repeat(np.arange(len(words)), wide)
        inside = np.arange(int(cells.sum())) - np.repeat(np.cumsum(wide) - wide, wide)
        other = others[starts[of_pair][word_of] + inside]
        key = other * len(self.shares) + words[word_of]
        at = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        known = (self.keys[at] == key) & (other >= 0) & (words[word_of] >= 0)
        theta = np.bincount(word_of, np.where(known, self.values[at], 0.0), minlength=len(words))
        share = self.shares[np.maximum(words, 0)]
        gain = np.log((1 - _MIXED) * theta / np.maximum(1, wide) / share + _MIXED)
        gain = np.where((words >= 0) & (wide > 0), gain, 0.0)
        return np.bincount(of_pair, gain, minlength=len(given))


class _Half:
    """The tables trained on one half of the sample."""

    def __init__(self, rows: Sequence[LexiconRow]) -> None:
        self._ids: tuple[dict[str, int], dict[str, int]] = {}, {}
        src_ids, tgt_ids = self._ids
        numbered = [
            (
                [src_ids.setdefault(word, len(src_ids)) for word in src],
                [tgt_ids.setdefault(word, len(tgt_ids)) for word in tgt],
            )
            for src, tgt in rows
        ]
        blocks, table = make_blocks(numbered)
        self._tables = []
        for side, direction in enumerate(
            (Direction(blocks, table), Direction([block.turned() for block in blocks], table.turned()))
        ):
            for _ in range(_ITERATIONS):
                direction.learn()
            generated = [row[1 - side] for row in numbered]
            counts = np.bincount(list(chain.from_iterable(generated)), minlength=len(self._ids[1 - side]))
            keys = direction.table.given * len(counts) + direction.table.generated
            order = np.argsort(keys)
            shares = (counts + 0.5) / max(1, counts.sum())
            self._tables.append(_Table(keys[order], direction.translation[order], shares))

    def scores(self, rows: Sequence[LexiconRow]) -> np.ndarray:
        src, tgt = (
            [[ids.get(word, -1) for word in row[side]] for row in rows] for side, ids in enumerate(self._ids)
        )
        forward, backward = self._tables
        found = forward.scores(src, tgt) + backward.scores(tgt, src)
        for number, (one, other) in enumerate(zip(src, tgt, strict=True)):
            if -1 in one and -1 in other:
                own, others = rows[number]
                new = {word for word, known in zip(own, one, strict=True) if known < 0}
                found[number] += _SAME * len(new.intersection(others))
        words = np.array([len(one) + len(other) for one, other in rows])
        return found / np.sqrt(words + 2)


class Lexicon:
    """Scores pairs. The score is high if the words of each side explain those of the other."""

    def __init__(self, sample: Sequence[tuple[str, str]]) -> None:
        halves: tuple[list[LexiconRow], list[LexiconRow]] = [], []
        for pair in sample:
            halves[half_of(pair)].append((word_stems(pair[0]), word_stems(pair[1])))
        self._halves = [_Half(rows) for rows in halves]

    def scores(self, pairs: Sequence[tuple[str, str]], halves: np.ndarray | None = None) -> np.ndarray:
        """The scores of pairs. For artificial pairs, `halves` says which half their sentences come from."""
        rows = [(word_stems(src), word_stems(tgt)) for src, tgt in pairs]
        own_half = np.array([half_of(pair) for pair in pairs]) if halves is None else halves
        result = np.zeros(len(rows))
        for number, half in enumerate(self._halves):
            others = np.flatnonzero(own_half != number)
            if len(others):
                result[others] = half.scores([rows[place] for place in others])
        return result


def half_of(pair: tuple[str, str]) -> int:
    """The table (0 or 1) that a pair is used to train."""
    return crc32("\t".join(pair).encode("utf-8", "surrogatepass")) & 1
