"""A validation set out of the training data, without a sentence that stays in training.

A pair's place in line is a hash of its normalised source and the seed. Pairs with the same normalised source
stand at the same place and go together, so no source of the validation set is left in training.
"""

import numpy as np

from dragoman.data.clean import HELD_OUT, KEPT
from dragoman.data.text_hash import mix

_CHUNK = 1 << 20
_KEY = 0x5EED_0F_5B117
"""Keeps the order of the split apart from other uses of the same hashes."""


def hold_out(src_hashes: np.ndarray, codes: np.ndarray, valid_size: int, seed: int) -> None:
    """Set `codes` to HELD_OUT for about `valid_size` pairs, at most a tenth of those that are kept.

    `src_hashes` are of normalised sources. A tiny corpus gives one pair, if it has two different sources.
    """
    usable = count_kept(codes)
    wanted = min(valid_size, max(1, usable // 10))
    if wanted == 0 or usable < 2:
        return
    share = 2 * wanted / usable
    while True:
        indices, ranks = _front(src_hashes, codes, min(share, 1.0), seed)
        chosen = _whole_groups(indices, ranks, wanted, most=max(1, wanted // 20))
        if len(chosen) == wanted or share >= 1.0:
            break
        share *= 4  # repeated sources have left gaps: look further down the line
    if len(chosen) < wanted // 2:  # nearly every source occurs often
        chosen = _whole_groups(indices, ranks, wanted, most=wanted)
    if len(chosen) == 0:
        chosen = _whole_groups(indices, ranks, usable // 2, most=usable // 2, single=True)
    codes[chosen] = HELD_OUT


def hold_out_end(codes: np.ndarray, valid_size: int) -> None:
    """The same of text: its last lines, since lines out of its middle would tear it."""
    wanted = min(valid_size, count_kept(codes) // 10)
    for end in range(len(codes), 0, -_CHUNK):
        start = max(0, end - _CHUNK)
        kept = start + np.flatnonzero(codes[start:end] == KEPT)
        taken = kept[max(0, len(kept) - wanted) :]
        codes[taken] = HELD_OUT
        wanted -= len(taken)


def count_kept(codes: np.ndarray) -> int:
    return sum(int((codes[i : i + _CHUNK] == KEPT).sum()) for i in range(0, len(codes), _CHUNK))


def _front(
    src_hashes: np.ndarray, codes: np.ndarray, share: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs in the first `share` of the line, in its order: their numbers and their places."""
    limit = np.uint64(min(int(share * 2.0**64), (1 << 64) - 1))
    found_indices, found_ranks = [], []
    for start in range(0, len(codes), _CHUNK):
        ranks = mix(src_hashes[start : start + _CHUNK], seed ^ _KEY)
        near = np.flatnonzero((codes[start : start + _CHUNK] == KEPT) & (ranks <= limit))
        found_indices.append(start + near)
        found_ranks.append(ranks[near])
    indices, ranks = np.concatenate(found_indices), np.concatenate(found_ranks)
    order = np.argsort(ranks, kind="stable")
    return indices[order], ranks[order]


def _whole_groups(
    indices: np.ndarray, ranks: np.ndarray, wanted: int, most: int, *, single: bool = False
) -> np.ndarray:
    """Groups of one place, taken in order while they fit: up to `most` pairs each, `wanted` in all."""
    begins = np.flatnonzero(np.diff(ranks, prepend=~ranks[:1]) != 0)
    sizes = np.diff(begins, append=len(ranks))
    taken: list[np.ndarray] = []
    room = wanted
    for begin, size in zip(begins.tolist(), sizes.tolist(), strict=True):
        if size <= min(most, room):
            taken.append(indices[begin : begin + size])
            room -= size
        if room == 0 or (single and taken):
            break
    return np.concatenate(taken) if taken else np.empty(0, dtype=np.int64)
