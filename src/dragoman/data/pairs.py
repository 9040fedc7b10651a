"""Pairs read from a store, as they were encoded or segmented again in every epoch (BPE-dropout)."""

from collections.abc import Iterable

import numpy as np

from dragoman.data.store import PairStore
from dragoman.text.tokenizer import Tokenizer

IdPair = tuple[np.ndarray, np.ndarray]


def load_pairs(store: PairStore, indices: Iterable[int] | np.ndarray) -> list[IdPair]:
    """The ids of both sides, without special tokens."""
    return [(store.src(index), store.tgt(index)) for index in map(int, indices)]


def load_pairs_dropout(
    store: PairStore,
    indices: Iterable[int] | np.ndarray,
    src_tokenizer: Tokenizer,
    tgt_tokenizer: Tokenizer,
    *,
    rate: float,
    seed: int,
    epoch: int,
    max_length: int | None = None,
) -> list[IdPair]:
    """Both sides segmented with BPE-dropout: a pure function of (seed, epoch, index).

    Segmentations with dropout are longer than the sampler has budgeted for. A side that would exceed
    `max_length` keeps its usual ids.
    """
    pairs = load_pairs(store, indices := [int(index) for index in indices])
    if rate == 0.0:
        return pairs

    def again(tokenizer: Tokenizer, ids: np.ndarray, side: int, index: int) -> np.ndarray:
        text = tokenizer.decode(ids.tolist())
        anew = tokenizer.encode_dropout(text, rate, (seed, epoch, side, index))
        anew = [*tokenizer.opening_of(ids), *anew]
        if max_length is not None and len(anew) > max_length:
            return ids
        return np.array(anew, dtype=np.int64)

    return [
        (again(src_tokenizer, src, 0, index), again(tgt_tokenizer, tgt, 1, index))
        for index, (src, tgt) in zip(indices, pairs, strict=True)
    ]
