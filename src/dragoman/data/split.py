"""Split off a validation set that shares no source sentence with the training data.

Pairs are ordered by a hash of their normalised source and the seed. Pairs with the same normalised source
have the same rank and are taken together, so no source of the validation set is left in training.
"""

from collections.abc import Sequence

import numpy as np

from dragoman.data.drop_reasons import DUPLICATE, HELD_OUT, KEPT_CODE
from dragoman.data.text_hashes import contains, mix

_CHUNK = 1 << 20
_MOST_REPEATS = 4
"""Largest number of pairs per corpus that may share a sentence held out in several directions."""
_KEY = 0x5EED_0F_5B117
"""Keeps the order of the split independent of other uses of the same hashes."""


def hold_out(src_hashes: np.ndarray, codes: np.ndarray, valid_size: int, seed: int) -> None:
    """Set `codes` to HELD_OUT for about `valid_size` pairs, at most a tenth of the kept pairs.

    `src_hashes` are of normalised sources. A tiny corpus gives up one pair if it has two different sources.
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
        share *= 4  # repeated sources have left gaps: look further down the order
    if len(chosen) < wanted // 2:  # nearly every source is repeated
        chosen = _whole_groups(indices, ranks, wanted, most=wanted)
    if len(chosen) == 0:
        chosen = _whole_groups(indices, ranks, usable // 2, most=usable // 2, single=True)
    codes[chosen] = HELD_OUT


def hold_out_directions(
    src_hashes: np.ndarray,
    tgt_hashes: np.ndarray,
    codes: np.ndarray,
    corpora: Sequence[tuple[int, int, int]],
    valid_size: int,
    seed: int,
) -> None:
    """`hold_out` for several directions, with about as many pairs of each. `corpora` are (begin, end,
    direction).

    A held-out sentence is held out in all directions and on both sides: otherwise training would see the
    translation of a validation sentence. Frequent sentences are not chosen.
    """
    directions = [direction for _, _, direction in corpora]
    each = max(1, valid_size // len(set(directions))) if valid_size else 0
    for begin, end, direction in corpora:
        own = slice(begin, end)
        share = -(-each // directions.count(direction))
        missing = share - int((codes[own] == HELD_OUT).sum())
        if missing <= 0:
            continue
        before = codes[own].copy()
        hold_out(src_hashes[own], codes[own], missing, seed)
        new = begin + np.flatnonzero((codes[own] == HELD_OUT) & (before != HELD_OUT))
        sentences = np.unique(np.concatenate([src_hashes[new], tgt_hashes[new]]))
        often = _often(sentences, src_hashes, tgt_hashes, codes, most=_MOST_REPEATS * len(corpora))
        codes[new[np.isin(src_hashes[new], often) | np.isin(tgt_hashes[new], often)]] = KEPT_CODE
        sentences = np.setdiff1d(sentences, often)
        for start in range(0, len(codes), _CHUNK):
            part = slice(start, start + _CHUNK)
            found = contains(sentences, src_hashes[part]) | contains(sentences, tgt_hashes[part])
            codes[part][found & (codes[part] == KEPT_CODE)] = HELD_OUT


def _often(
    sentences: np.ndarray, src_hashes: np.ndarray, tgt_hashes: np.ndarray, codes: np.ndarray, most: int
) -> np.ndarray:
    """The sorted `sentences` that occur in more than `most` kept pairs."""
    counts = np.zeros(len(sentences), dtype=np.int64)
    for start in range(0, len(codes), _CHUNK):
        part = slice(start, start + _CHUNK)
        kept = codes[part] == KEPT_CODE
        for hashes in (src_hashes[part][kept], tgt_hashes[part][kept]):
            found = hashes[contains(sentences, hashes)]
            np.add.at(counts, np.searchsorted(sentences, found), 1)
    return sentences[counts > most]


def hold_out_documents(
    documents: np.ndarray, src_hashes: np.ndarray, codes: np.ndarray, valid_size: int, seed: int
) -> None:
    """`hold_out` for whole documents, so that no training sentence stands next to a held-out one. A single
    document gives up its end. Held-out pairs whose source is also in training are dropped."""
    sizes = np.bincount(documents[codes == KEPT_CODE].astype(np.int64), minlength=int(documents.max()) + 1)
    room = min(valid_size, max(1, count_kept(codes) // 10))
    wanted = np.zeros(len(sizes), dtype=bool)
    for number in np.argsort(mix(np.arange(len(sizes), dtype=np.uint64), seed ^ _KEY)).tolist():
        if 0 < sizes[number] <= room:
            wanted[number] = True
            room -= sizes[number]
    if not wanted.any():
        hold_out_end(codes, valid_size)
    else:
        codes[wanted[documents.astype(np.int64)] & (codes == KEPT_CODE)] = HELD_OUT
    held_out = np.flatnonzero(codes == HELD_OUT)
    learnt = np.unique(src_hashes[codes == KEPT_CODE])
    codes[held_out[contains(learnt, src_hashes[held_out])]] = DUPLICATE


def hold_out_end(codes: np.ndarray, valid_size: int) -> None:
    """Hold out the last lines, for monolingual text. Lines from the middle would interrupt the text."""
    wanted = min(valid_size, count_kept(codes) // 10)
    for end in range(len(codes), 0, -_CHUNK):
        start = max(0, end - _CHUNK)
        kept = start + np.flatnonzero(codes[start:end] == KEPT_CODE)
        taken = kept[max(0, len(kept) - wanted) :]
        codes[taken] = HELD_OUT
        wanted -= len(taken)


def count_kept(codes: np.ndarray) -> int:
    return sum(int((codes[i : i + _CHUNK] == KEPT_CODE).sum()) for i in range(0, len(codes), _CHUNK))


def _front(
    src_hashes: np.ndarray, codes: np.ndarray, share: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The first `share` of the pairs in the order of the split: their indices and ranks."""
    limit = np.uint64(min(int(share * 2.0**64), (1 << 64) - 1))
    found_indices, found_ranks = [], []
    for start in range(0, len(codes), _CHUNK):
        ranks = mix(src_hashes[start : start + _CHUNK], seed ^ _KEY)
        near = np.flatnonzero((codes[start : start + _CHUNK] == KEPT_CODE) & (ranks <= limit))
        found_indices.append(start + near)
        found_ranks.append(ranks[near])
    indices, ranks = np.concatenate(found_indices), np.concatenate(found_ranks)
    order = np.argsort(ranks, kind="stable")
    return indices[order], ranks[order]


def _whole_groups(
    indices: np.ndarray, ranks: np.ndarray, wanted: int, most: int, *, single: bool = False
) -> np.ndarray:
    """Groups of equal rank, taken in order while they fit: up to `most` pairs each, `wanted` in all."""
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
