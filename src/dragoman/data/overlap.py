"""Find test sentences that occur in the training data, exactly or up to case, punctuation and spaces."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.data.config import SourceConfig
from dragoman.data.formats import Pair, read_pairs
from dragoman.data.text_hashes import contains, hash_text, mix, normalise

_SIDES = ("src", "tgt", "pair")


@dataclass(frozen=True)
class OverlapCounts:
    """Number of test pairs whose source, target, or both as a pair occur in the training data."""

    src: int
    tgt: int
    pair: int


@dataclass(frozen=True)
class OverlapReport:
    pairs: int
    """Number of pairs in the test set."""
    exact: OverlapCounts
    normalised: OverlapCounts


class Leaks:
    """Holds a test set in memory and compares it with the training data as they stream by."""

    def __init__(self, test: Sequence[SourceConfig], src_lang: str, tgt_lang: str) -> None:
        pairs = [pair for source in test for pair in read_pairs(source, src_lang, tgt_lang)]
        self._texts = _texts(pairs)
        self._known = {side: set(texts) for side, texts in self._texts.items()}
        self._exact: dict[str, set[object]] = {side: set() for side in _SIDES}
        src, tgt = (
            np.array([hash_text(normalise(getattr(pair, side))) for pair in pairs], dtype=np.uint64)
            for side in ("src", "tgt")
        )
        self._hashes = _hashes(src, tgt)
        self._known_hashes = {side: np.unique(hashes) for side, hashes in self._hashes.items()}
        self._normalised = {
            side: np.zeros(len(hashes), dtype=bool) for side, hashes in self._known_hashes.items()
        }

    def look_at(self, pairs: Sequence[Pair], src_hashes: np.ndarray, tgt_hashes: np.ndarray) -> np.ndarray:
        """Record the test texts among these training pairs. Returns which training pairs have the source of a
        test pair.

        The hashes are of normalised sides.
        """
        for side, texts in _texts(pairs).items():
            self._exact[side].update(self._known[side].intersection(texts))
        for side, hashes in _hashes(src_hashes, tgt_hashes).items():
            known = self._known_hashes[side]
            found = hashes[contains(known, hashes)]
            self._normalised[side][np.searchsorted(known, found)] = True
        return contains(self._known_hashes["src"], src_hashes)

    def report(self) -> OverlapReport:
        exact = {side: sum(text in self._exact[side] for text in self._texts[side]) for side in _SIDES}
        normalised = {
            side: int(self._normalised[side][np.searchsorted(known, self._hashes[side])].sum())
            for side, known in self._known_hashes.items()
        }
        return OverlapReport(
            pairs=len(self._texts["src"]),
            exact=OverlapCounts(exact["src"], exact["tgt"], exact["pair"]),
            normalised=OverlapCounts(normalised["src"], normalised["tgt"], normalised["pair"]),
        )


def _texts(pairs: Sequence[Pair]) -> dict[str, list[object]]:
    return {
        "src": [pair.src for pair in pairs],
        "tgt": [pair.tgt for pair in pairs],
        "pair": [(pair.src, pair.tgt) for pair in pairs],
    }


def _hashes(src: np.ndarray, tgt: np.ndarray) -> dict[str, np.ndarray]:
    return {"src": src, "tgt": tgt, "pair": mix(src, 1) ^ tgt}
