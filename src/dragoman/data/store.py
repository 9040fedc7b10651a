"""Encoded pairs in memory-mapped files: any number of them, read as they are used.

A side is three files: all ids one after another, the place where each sentence begins, and its length.
A fourth file has the line of each pair in its corpus. Word alignments, where there are any, are a third side:
two numbers a link.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np

from dragoman.data.hashes import map_numbers
from dragoman.data.sampler import CorpusRange
from dragoman.errors import UserError

__all__ = ["CorpusRange", "PairStore", "StoreMeta", "StoreWriter"]

_SIDES = ("src", "tgt")
_LINKS = "links"
_LINK_DTYPE = np.dtype(np.uint32)


@dataclass(frozen=True)
class StoreMeta:
    """What the files do not say themselves."""

    pairs: int
    src_dtype: str
    tgt_dtype: str
    corpora: tuple[CorpusRange, ...]
    names: tuple[str, ...]
    """Of each corpus, its first file."""
    linked: bool = False
    """Whether there are word alignments."""


class PairStore:
    """Read-only pairs of raw ids (no specials)."""

    def __init__(self, directory: Path, name: str, meta: StoreMeta) -> None:
        self.corpora, self._names = meta.corpora, meta.names
        self._size = meta.pairs
        self._ids: dict[str, np.ndarray] = {}
        self._offsets: dict[str, np.ndarray] = {}
        lengths: dict[str, np.ndarray] = {}
        self.linked = meta.linked
        sides = [("src", meta.src_dtype), ("tgt", meta.tgt_dtype)]
        for side, dtype in [*sides, (_LINKS, _LINK_DTYPE)] if meta.linked else sides:
            self._ids[side] = map_numbers(directory / f"{name}.{side}.ids", np.dtype(dtype))
            offsets = map_numbers(directory / f"{name}.{side}.offsets", np.int64)
            lengths[side] = map_numbers(directory / f"{name}.{side}.lengths", np.int32)
            whole = len(offsets) == meta.pairs + 1 and len(lengths[side]) == meta.pairs
            if not whole or offsets[-1] != len(self._ids[side]):
                raise UserError(f"{directory}: the files {name}.{side}.* do not fit together; prepare again")
            self._offsets[side] = offsets
        self.lines = map_numbers(directory / f"{name}.lines", np.int64)
        """In its corpus, of each pair."""
        self.src_lengths, self.tgt_lengths = lengths["src"], lengths["tgt"]

    def __len__(self) -> int:
        return self._size

    def src(self, index: int) -> np.ndarray:
        return self._side("src", index)

    def tgt(self, index: int) -> np.ndarray:
        return self._side("tgt", index)

    def tgt_begin(self, index: int) -> int:
        """How many target ids stand before a pair; for the number of pairs, how many there are."""
        return int(self._offsets["tgt"][index])

    def links(self, index: int) -> np.ndarray:
        """L 2: the numbers of source and target words that belong together; none where nothing was said."""
        return self._side(_LINKS, index).reshape(-1, 2)

    def origin(self, index: int) -> str:
        """Where the pair was read: `a.en:17`."""
        corpus = bisect_right([corpus.end for corpus in self.corpora], index)
        return f"{self._names[corpus]}:{self.lines[index]}"

    def _side(self, side: str, index: int) -> np.ndarray:
        if not 0 <= index < self._size:
            raise IndexError(f"pair {index} of {self._size}")
        offsets = self._offsets[side]
        return self._ids[side][offsets[index] : offsets[index + 1]]


class StoreWriter:
    """Writes the files of a `PairStore`, corpus after corpus, a chunk at a time."""

    def __init__(
        self, directory: Path, name: str, src_dtype: np.dtype, tgt_dtype: np.dtype, linked: bool = False
    ) -> None:
        self._dtypes = {"src": src_dtype, "tgt": tgt_dtype} | ({_LINKS: _LINK_DTYPE} if linked else {})
        kinds = ("ids", "offsets", "lengths")
        self._files = {
            (side, kind): (directory / f"{name}.{side}.{kind}").open("wb")
            for side in self._dtypes
            for kind in kinds
        }
        self._files["pair", "lines"] = (directory / f"{name}.lines").open("wb")
        self._tokens = dict.fromkeys(self._dtypes, 0)
        self._pairs = 0
        self._ends: list[int] = []
        for side in self._dtypes:
            np.zeros(1, dtype=np.int64).tofile(self._files[side, "offsets"])

    def append(
        self,
        src: tuple[np.ndarray, np.ndarray],
        tgt: tuple[np.ndarray, np.ndarray],
        lines: np.ndarray,
        keep: np.ndarray,
        links: tuple[np.ndarray, np.ndarray],
    ) -> None:
        """Add the pairs where `keep` holds; a side is (all ids, length of each sentence). Links are left out
        where the store has none."""
        for side, (ids, lengths) in zip((*_SIDES, _LINKS), (src, tgt, links), strict=True):
            if side not in self._dtypes:
                continue
            kept_ids = ids[np.repeat(keep, lengths)].astype(self._dtypes[side])
            kept_lengths = lengths[keep]
            kept_ids.tofile(self._files[side, "ids"])
            kept_lengths.astype(np.int32).tofile(self._files[side, "lengths"])
            (self._tokens[side] + np.cumsum(kept_lengths, dtype=np.int64)).tofile(
                self._files[side, "offsets"]
            )
            self._tokens[side] += len(kept_ids)
        lines[keep].astype(np.int64).tofile(self._files["pair", "lines"])
        self._pairs += int(keep.sum())

    def end_corpus(self) -> None:
        self._ends.append(self._pairs)

    def finish(self, names: Sequence[str], weights: Sequence[float]) -> StoreMeta:
        starts = [0, *self._ends[:-1]]
        corpora = zip(starts, self._ends, weights, strict=True)
        return StoreMeta(
            pairs=self._pairs,
            src_dtype=self._dtypes["src"].name,
            tgt_dtype=self._dtypes["tgt"].name,
            corpora=tuple(CorpusRange(start, end, weight) for start, end, weight in corpora),
            names=tuple(names),
            linked=_LINKS in self._dtypes,
        )

    def __enter__(self) -> "StoreWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()
