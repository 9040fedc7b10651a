"""Invented pairs for small corpora of words: the part that source and target share is replaced.

    V;PST  walk   walked          the shared stem, here `walk`, is found,
    V;PST  wqzk   wqzked          and its inner letters are replaced, equally on both sides

They teach a model with a few hundred training words which letters are copied and which change
(data hallucination, Anastasopoulos & Neubig 2019, section 3.2). Letters come from the stems of the corpus
itself. An invented pair is a pure function of (seed, epoch, number), and as long as its original.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np

from dragoman.data.sampler import CorpusRange
from dragoman.data.seeded_random import GOLDEN, splitmix
from dragoman.data.store import IdPair, PairStore

LEAST = 3
"""Smallest number of pieces of a stem. The first and last piece are kept, those between are replaced."""
_LETTERS_FROM = 5000
"""Number of pairs whose stems provide the letters."""
_KEY = np.uint64(0x1472)


def common_runs(src: np.ndarray, tgt: np.ndarray) -> list[tuple[int, int, int]]:
    """The common runs of at least `LEAST` pieces: the start on each side and the length."""
    matcher = SequenceMatcher(None, src.tolist(), tgt.tolist(), autojunk=False)
    return [(a, b, size) for a, b, size in matcher.get_matching_blocks() if size >= LEAST]


class Inventor:
    """The pairs of a store with the given numbers, followed by `times` as many invented pairs."""

    def __init__(self, store: PairStore, numbers: np.ndarray, times: int, seed: int) -> None:
        self.store, self.numbers, self.times, self.seed = store, numbers, times, seed
        self.letters = self._letters()
        self._stems: dict[int, list[tuple[int, int, int]]] = {}

    def __len__(self) -> int:
        return len(self.numbers) * (1 + self.times)

    def _letters(self) -> np.ndarray:
        """All pieces inside stems, with repetitions, so that drawing from them keeps their frequencies."""
        found: list[int] = []
        for number in self.numbers[:: max(1, -(-len(self.numbers) // _LETTERS_FROM))].tolist():
            tgt = self.store.tgt(number)
            for _, begin, size in common_runs(self.store.src(number), tgt):
                found.extend(tgt[begin : begin + size].tolist())
        return np.array(sorted(found), dtype=np.int64)

    def repeated(self, values: np.ndarray) -> np.ndarray:
        """Repeat one value per pair for the pairs invented from it."""
        return np.tile(np.asarray(values), 1 + self.times)

    def repeated_corpora(self, corpora: Sequence[CorpusRange]) -> tuple[CorpusRange, ...]:
        size = len(self.numbers)
        return tuple(
            CorpusRange(turn * size + corpus.start, turn * size + corpus.end, corpus.weight)
            for turn in range(1 + self.times)
            for corpus in corpora
        )

    def pairs(self, numbers: np.ndarray, epoch: int) -> list[IdPair]:
        """Real and invented pairs by their indices."""
        keys = splitmix(np.asarray(numbers).astype(np.uint64) + self._key(epoch))
        return [self._pair(number, key) for number, key in zip(map(int, numbers), keys, strict=True)]

    def _key(self, epoch: int) -> np.ndarray:
        """The random key of an epoch of this run."""
        seeds, epochs = np.array([[self.seed % (1 << 64)], [epoch]], dtype=np.uint64)  # arrays wrap around
        return splitmix(splitmix(seeds + _KEY) + epochs * GOLDEN)

    def _pair(self, number: int, key: np.uint64) -> IdPair:
        turn, place = divmod(number, len(self.numbers))
        base = int(self.numbers[place])
        src, tgt = self.store.src(base), self.store.tgt(base)
        if turn == 0 or not len(self.letters):
            return src, tgt
        found = self._stems.get(base)
        if found is None:
            found = self._stems[base] = common_runs(src, tgt)
        src, tgt = src.copy(), tgt.copy()
        drawn = self._draw(key, sum(size - 2 for _, _, size in found))
        for in_src, in_tgt, size in found:
            inside, drawn = drawn[: size - 2], drawn[size - 2 :]
            src[in_src + 1 : in_src + size - 1] = inside
            tgt[in_tgt + 1 : in_tgt + size - 1] = inside
        return src, tgt

    def _draw(self, key: np.uint64, count: int) -> np.ndarray:
        """Draw letters with the frequencies that they have in stems."""
        raw = splitmix(np.full(count, key) + np.arange(count, dtype=np.uint64) * GOLDEN)
        return self.letters[((raw >> np.uint64(11)) * 2.0**-53 * len(self.letters)).astype(np.int64)]
