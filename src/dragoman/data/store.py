"""Encoded pairs in memory-mapped files: any number of them, read as they are used.

    train.src.lengths   train.tgt.lengths   train.lines      of all pairs: what batches are planned from
    train.src.ids       train.src.offsets                    the ids, one after another, and where each begins
    train.tgt.ids       train.tgt.offsets

A large store is cut into shards, `train-00007.src.ids` and so on, which may lie in several directories; a
shard is opened when a pair of it is asked for. Word alignments, where there are any, are a third side: two
numbers a link. How a store is cut has no part in its contents: a pair has the same number in any of them.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

from dragoman.data.hashes import map_numbers
from dragoman.data.sampler import CorpusRange
from dragoman.errors import UserError

__all__ = ["CorpusRange", "PairStore", "ShardMeta", "StoreMeta", "StoreWriter"]

_SIDES = ("src", "tgt")
_LINKS = "links"
_LINK_DTYPE = np.dtype(np.uint32)


@dataclass(frozen=True)
class ShardMeta:
    pairs: int
    tgt_tokens: int


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
    shards: tuple[ShardMeta, ...] = ()
    """None: the store is not cut, and its files have no numbers."""


class _Shard:
    """Neighbours in a store: their ids, and where those of each begin."""

    def __init__(self, directory: Path, name: str, pairs: int, dtypes: Mapping[str, np.dtype]) -> None:
        self._ids: dict[str, np.ndarray] = {}
        self._offsets: dict[str, np.ndarray] = {}
        for side, dtype in dtypes.items():
            self._ids[side] = map_numbers(directory / f"{name}.{side}.ids", dtype)
            self._offsets[side] = offsets = map_numbers(directory / f"{name}.{side}.offsets", np.int64)
            if len(offsets) != pairs + 1 or offsets[-1] != len(self._ids[side]):
                raise UserError(f"{directory}: the files {name}.{side}.* do not fit together; prepare again")

    def ids(self, side: str, index: int) -> np.ndarray:
        offsets = self._offsets[side]
        return self._ids[side][offsets[index] : offsets[index + 1]]

    def tgt_begin(self, index: int) -> int:
        return int(self._offsets["tgt"][index])


class PairStore:
    """Read-only pairs of raw ids (no specials)."""

    def __init__(self, directory: Path, name: str, meta: StoreMeta) -> None:
        self.corpora, self._names = meta.corpora, meta.names
        self.linked = meta.linked
        self._directory, self._name, self._meta = directory, name, meta
        self._size = meta.pairs
        self._starts = list(accumulate((shard.pairs for shard in meta.shards), initial=0))
        self._tgt_starts = list(accumulate((shard.tgt_tokens for shard in meta.shards), initial=0))
        lengths = [map_numbers(directory / f"{name}.{side}.lengths", np.int32) for side in _SIDES]
        for side, found in zip(_SIDES, lengths, strict=True):
            if len(found) != meta.pairs:
                raise UserError(f"{directory}: the files {name}.{side}.* do not fit together; prepare again")
        self.src_lengths, self.tgt_lengths = lengths
        self.lines = map_numbers(directory / f"{name}.lines", np.int64)
        """In its corpus, of each pair."""
        self._shards: list[_Shard | None] = [None] * max(1, len(meta.shards))
        if not meta.shards:
            self._shard(0)  # what is wrong with it should come out at once

    def __len__(self) -> int:
        return self._size

    @property
    def opened(self) -> int:
        """How many shards a pair has been read from."""
        return sum(shard is not None for shard in self._shards)

    def src(self, index: int) -> np.ndarray:
        return self._side("src", index)

    def tgt(self, index: int) -> np.ndarray:
        return self._side("tgt", index)

    def tgt_begin(self, index: int) -> int:
        """How many target ids stand before a pair; for the number of pairs, how many there are."""
        number = min(bisect_right(self._starts, index), len(self._shards)) - 1
        return self._tgt_starts[number] + self._shard(number).tgt_begin(index - self._starts[number])

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
        number = bisect_right(self._starts, index) - 1
        return self._shard(number).ids(side, index - self._starts[number])

    def _shard(self, number: int) -> _Shard:
        found = self._shards[number]
        if found is None:
            meta = self._meta
            dtypes = {"src": np.dtype(meta.src_dtype), "tgt": np.dtype(meta.tgt_dtype)}
            dtypes |= {_LINKS: _LINK_DTYPE} if meta.linked else {}
            name = shard_name(self._name, number) if meta.shards else self._name
            pairs = meta.shards[number].pairs if meta.shards else meta.pairs
            found = self._shards[number] = _Shard(self._directory, name, pairs, dtypes)
        return found


def shard_name(store: str, number: int) -> str:
    return f"{store}-{number:05d}"


class StoreWriter:
    """Writes the files of a `PairStore`, corpus after corpus, a chunk at a time. With `shard_pairs`, shards
    of so many pairs are written into `shard_directories` in turn."""

    def __init__(
        self,
        directory: Path,
        name: str,
        src_dtype: np.dtype,
        tgt_dtype: np.dtype,
        linked: bool = False,
        shard_pairs: int | None = None,
        shard_directories: Sequence[Path] = (),
    ) -> None:
        self._dtypes = {"src": src_dtype, "tgt": tgt_dtype} | ({_LINKS: _LINK_DTYPE} if linked else {})
        self._directory, self._name = directory, name
        self._shard_pairs, self._shard_directories = shard_pairs, shard_directories or (directory,)
        self._whole: dict[str, BinaryIO] = {
            kind: (directory / f"{name}.{kind}").open("wb")
            for kind in (*(f"{side}.lengths" for side in self._dtypes), "lines")
        }
        self._part: dict[str, BinaryIO] = {}
        self._tokens: dict[str, int] = {}
        self._shards: list[ShardMeta] = []
        self._pairs = self._in_shard = 0
        self._ends: list[int] = []
        self._begin_shard()

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
        kept = {
            side: (ids[np.repeat(keep, lengths)].astype(self._dtypes[side]), lengths[keep])
            for side, (ids, lengths) in zip((*_SIDES, _LINKS), (src, tgt, links), strict=True)
            if side in self._dtypes
        }
        for side, (_, lengths) in kept.items():
            lengths.astype(np.int32).tofile(self._whole[f"{side}.lengths"])
        lines[keep].astype(np.int64).tofile(self._whole["lines"])
        count, done = int(keep.sum()), 0
        self._pairs += count
        ends = {side: np.append(0, np.cumsum(lengths, dtype=np.int64)) for side, (_, lengths) in kept.items()}
        while done < count:
            if self._in_shard == self._shard_pairs:
                self._end_shard()
                self._begin_shard()
            until = count if self._shard_pairs is None else done + self._shard_pairs - self._in_shard
            until = min(count, until)
            for side, (ids, _) in kept.items():
                first, last = ends[side][done], ends[side][until]
                ids[first:last].tofile(self._part[f"{side}.ids"])
                offsets = self._tokens[side] + ends[side][done + 1 : until + 1] - first
                offsets.tofile(self._part[f"{side}.offsets"])
                self._tokens[side] += int(last - first)
            self._in_shard += until - done
            done = until

    def end_corpus(self) -> None:
        self._ends.append(self._pairs)

    def finish(self, names: Sequence[str], weights: Sequence[float]) -> StoreMeta:
        self._end_shard()
        starts = [0, *self._ends[:-1]]
        corpora = zip(starts, self._ends, weights, strict=True)
        return StoreMeta(
            pairs=self._pairs,
            src_dtype=self._dtypes["src"].name,
            tgt_dtype=self._dtypes["tgt"].name,
            corpora=tuple(CorpusRange(start, end, weight) for start, end, weight in corpora),
            names=tuple(names),
            linked=_LINKS in self._dtypes,
            shards=() if self._shard_pairs is None else tuple(self._shards),
        )

    def _begin_shard(self) -> None:
        directory, name = self._directory, self._name
        if self._shard_pairs is not None:
            number = len(self._shards)
            directory = self._shard_directories[number % len(self._shard_directories)]
            name = shard_name(name, number)
        self._in_shard = 0
        self._tokens = dict.fromkeys(self._dtypes, 0)
        for side in self._dtypes:
            for kind in ("ids", "offsets"):
                self._part[f"{side}.{kind}"] = (directory / f"{name}.{side}.{kind}").open("wb")
            np.zeros(1, dtype=np.int64).tofile(self._part[f"{side}.offsets"])

    def _end_shard(self) -> None:
        self._shards.append(ShardMeta(self._in_shard, self._tokens["tgt"]))
        for file in self._part.values():
            file.close()

    def __enter__(self) -> "StoreWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (*self._whole.values(), *self._part.values()):
            file.close()
