"""Invented pairs for small corpora of words: what source and target have in common is made up anew.

    V;PST  walk   walked          the stem that both sides share, here `walk`, is found,
    V;PST  wqzk   wqzked          and the letters inside it become others, the same on both sides

A model that has seen a few hundred words learns from them which letters are copied and which are changed
(data hallucination, Anastasopoulos & Neubig 2019, section 3.2). Letters come from the stems of the corpus
itself. An invented pair is a pure function of (seed, epoch, number), as long as the pair that it is made of.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np

from dragoman.data.pairs import IdPair
from dragoman.data.sampler import CorpusRange
from dragoman.data.seeded import Dice
from dragoman.data.store import PairStore

LEAST = 3
"""Pieces of a stem: the first and the last stay, what is inside changes."""
_LETTERS_FROM = 5000
"""Pairs whose stems give the letters."""
_KEY = 0x1472


def stems(src: np.ndarray, tgt: np.ndarray) -> list[tuple[int, int, int]]:
    """Where runs of at least `LEAST` equal pieces begin on both sides, and how long they are."""
    matcher = SequenceMatcher(None, src.tolist(), tgt.tolist(), autojunk=False)
    return [(a, b, size) for a, b, size in matcher.get_matching_blocks() if size >= LEAST]


class Inventor:
    """Pairs of a store, by their numbers in it, and `times` as many invented ones behind them."""

    def __init__(self, store: PairStore, numbers: np.ndarray, times: int, seed: int) -> None:
        self.store, self.numbers, self.times, self.seed = store, numbers, times, seed
        self.letters = self._letters()

    def __len__(self) -> int:
        return len(self.numbers) * (1 + self.times)

    def _letters(self) -> np.ndarray:
        """Pieces inside stems, each as often as it occurs there."""
        found: list[int] = []
        for number in self.numbers[:: -(-len(self.numbers) // _LETTERS_FROM) or 1].tolist():
            tgt = self.store.tgt(number)
            for _, begin, size in stems(self.store.src(number), tgt):
                found.extend(tgt[begin : begin + size].tolist())
        return np.array(sorted(found), dtype=np.int64)

    def repeated(self, values: np.ndarray) -> np.ndarray:
        """A number for every pair, and the same for those that are made of it."""
        return np.tile(np.asarray(values), 1 + self.times)

    def repeated_corpora(self, corpora: Sequence[CorpusRange]) -> tuple[CorpusRange, ...]:
        size = len(self.numbers)
        return tuple(
            CorpusRange(turn * size + corpus.start, turn * size + corpus.end, corpus.weight)
            for turn in range(1 + self.times)
            for corpus in corpora
        )

    def pair(self, number: int, epoch: int) -> IdPair:
        """The real pair with this number, or an invented one."""
        turn, place = divmod(number, len(self.numbers))
        base = int(self.numbers[place])
        src, tgt = self.store.src(base), self.store.tgt(base)
        return (src, tgt) if turn == 0 else self._invented(src, tgt, Dice(self.seed, _KEY, epoch, number))

    def _invented(self, src: np.ndarray, tgt: np.ndarray, dice: Dice) -> IdPair:
        found = stems(src, tgt)
        if not found or not len(self.letters):
            return src, tgt
        src, tgt = src.copy(), tgt.copy()
        for in_src, in_tgt, size in found:
            inside = self.letters[dice.below(len(self.letters), size - 2)]
            src[in_src + 1 : in_src + size - 1] = inside
            tgt[in_tgt + 1 : in_tgt + size - 1] = inside
        return src, tgt
