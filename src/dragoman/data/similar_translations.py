"""Training sources with the target of a similar pair behind them (neural fuzzy repair, Bulte & Tezcan 2019).

    Save the table. ─▶ Speichern Sie die Tabelle.
    Save the chart. <memory> Speichern Sie die Tabelle. ─▶ Speichern Sie das Diagramm.

Every pair of the corpus that is similar to another one is read a second time, with the target of the most
similar source that is not its own. Such copies come after all pairs.
"""

from collections.abc import Sequence

import numpy as np

from dragoman.data.memory import TranslationMemory
from dragoman.data.sampler import CorpusRange
from dragoman.data.store import IdPair, PairStore
from dragoman.text.source_additions import MEMORY_PIECES, similar_part
from dragoman.text.tokenizer import Tokenizer

_MOST = 50_000
"""Pairs that are looked at, spread over the corpus: it takes about a millisecond each."""
_LOOKED_AT = 32
_SAME = 100.0


class SimilarSources:
    """The copies of a store's pairs with these numbers. Copy k is of pair `copied[k]` of them."""

    def __init__(
        self,
        store: PairStore,
        tokenizer: Tokenizer,
        numbers: np.ndarray,
        least: float,
        max_length: int | None,
    ) -> None:
        tokenizer.control_ids(MEMORY_PIECES)  # refused before anything is looked for
        size = min(_MOST, len(numbers))
        places = np.linspace(0, len(numbers) - 1, size).astype(np.int64).tolist()
        sides = [
            [tokenizer.decode(of(int(numbers[n])).tolist()) for n in places] for of in (store.src, store.tgt)
        ]
        memory = TranslationMemory(zip(*sides, strict=True))
        copied: list[int] = []
        self._beside: list[np.ndarray] = []
        lengths: list[int] = []
        for place, text in zip(places, sides[0], strict=True):
            target = _nearest(memory, text, least)
            if target is None:
                continue
            beside = np.array(similar_part(tokenizer, target), dtype=np.int32)
            length = len(store.src(int(numbers[place]))) + len(beside)
            if max_length is None or length <= max_length:
                copied.append(place)
                self._beside.append(beside)
                lengths.append(length)
        self.copied = np.array(copied, dtype=np.int64)
        self._lengths = np.array(lengths, dtype=np.int64)

    def src_lengths(self, lengths: np.ndarray) -> np.ndarray:
        """Those of all pairs, and of the copies."""
        return np.concatenate([lengths, self._lengths.astype(lengths.dtype)])

    def tgt_lengths(self, lengths: np.ndarray) -> np.ndarray:
        return np.concatenate([lengths, lengths[self.copied]])

    def corpora(self, corpora: Sequence[CorpusRange], size: int) -> tuple[CorpusRange, ...]:
        """The parts of all corpora, and those of their copies after `size` pairs."""
        ends = [(np.searchsorted(self.copied, [one.start, one.end]) + size).tolist() for one in corpora]
        copies = (
            CorpusRange(start, end, one.weight) for one, (start, end) in zip(corpora, ends, strict=True)
        )
        return (*corpora, *(one for one in copies if one.start < one.end))

    def __call__(self, pair: IdPair, copy: int) -> IdPair:
        """A copy, of the pair as it is read in this epoch."""
        return np.concatenate([pair[0], self._beside[copy]], dtype=np.int64), pair[1]


def _nearest(memory: TranslationMemory, text: str, least: float) -> str | None:
    """The target of the most similar source but this one."""
    found = memory.matches(text, least, most=_LOOKED_AT, looked_at=_LOOKED_AT)
    return next((match.target for match in found if match.quality < _SAME), None)
