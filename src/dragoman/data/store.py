"""Encoded pairs in memory-mapped files: any number of them, read as they are used.

    train.src.lengths   train.tgt.lengths   train.lines      of all pairs, for planning batches
    train.src.ids       train.src.offsets                    the ids, one after another, and where each begins
    train.tgt.ids       train.tgt.offsets
    train.documents                                          of all pairs, if trained with context

A large store is divided into shards, `train-00007.src.ids` and so on, which may be in several directories. A
shard is opened on its first read. Word alignments, if any, are a third side with two numbers per link.
Sharding does not change the contents: a pair has the same index in any layout.
"""

import mmap
import os
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import partial
from itertools import accumulate

import numpy as np

from dragoman.data.store_writer import LINK_SIDE, StoreMeta, check_meta, dtypes_of, shard_name
from dragoman.data.verified_files import DamagedStore, StoreFiles
from dragoman.text.tokenizer import Tokenizer

Examine = Callable[[np.ndarray, int, int], bool]
"""Called with all numbers and a range; returns whether the range is consistent with other known facts."""


class CheckedNumbers:
    """Verified access to the numbers of a store.

    Verified blocks are remembered, so that each is verified once. Threads may share an instance: two of them
    may verify the same block, which is harmless. `examine` checks every block too; for stores without hashes
    it is the only check.
    """

    def __init__(
        self, files: StoreFiles, name: str, dtype: np.dtype | type, examine: Examine | None = None
    ) -> None:
        self._files, self._name, self._examine = files, name, examine
        dtype = np.dtype(dtype)
        size = files.size(name)
        if size % dtype.itemsize:
            raise DamagedStore(f"{files.directory / name}: damaged: not a whole number of numbers")
        self._descriptor = descriptor = files.open(name)
        weakref.finalize(self, os.close, descriptor)
        self.unverified: np.ndarray
        """All numbers, unverified. Callers must verify the blocks that they use."""
        if size:
            mapped = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
            self.unverified = np.frombuffer(mapped, dtype=dtype)
        else:  # an empty file cannot be mapped
            self.unverified = np.empty(0, dtype=dtype)
        per_block = files.block // dtype.itemsize
        self._shift = per_block.bit_length() - 1
        self._verified = bytearray(files.blocks(name) + 1)
        """One byte per block: whether it is verified. The last entry stands for the end of the file, which
        needs no check."""
        self._verified[-1] = 1

    def __len__(self) -> int:
        return len(self.unverified)

    def __getitem__(self, index: int) -> int:
        if not self._verified[index >> self._shift]:
            self._verify(index >> self._shift, index >> self._shift)
        return self.unverified.item(index)

    def part(self, begin: int, end: int) -> np.ndarray:
        """The numbers from index `begin` to before `end`."""
        first, last = begin >> self._shift, end >> self._shift
        if first != last or not self._verified[first]:
            self._verify(first, last)
        return self.unverified[begin:end]

    def whole(self) -> np.ndarray:
        """All numbers."""
        if 0 in self._verified:
            self._verify(0, len(self._verified) - 1)
        return self.unverified

    def _verify(self, first: int, last: int) -> None:
        """Verify blocks `first` to `last`. `last` may be one past the last block."""
        for number in range(first, last + 1):
            if not self._verified[number]:
                self._files.read_block(self._descriptor, self._name, number)
                begin = number << self._shift
                end = min(begin + (1 << self._shift), len(self.unverified))
                if self._examine is not None and not self._examine(self.unverified, begin, end):
                    path = self._files.directory / self._name
                    what = f"numbers {begin:,} to {end:,} contradict the files beside it"
                    raise DamagedStore(f"{path}: damaged: {what}")
                self._verified[number] = 1


_PAGE = 4096
"""Number of neighbouring pairs that are verified together. A sampler draws blocks of the same size."""


class _Side:
    """One side of the pairs of a shard: the ids and their offsets."""

    def __init__(
        self, files: StoreFiles, name: str, dtype: np.dtype, lengths: Callable[[], np.ndarray], most: int
    ) -> None:
        # No bound methods here: the reference cycle would keep files open until garbage collection.
        self._checked_ids = CheckedNumbers(files, f"{name}.ids", dtype, partial(_are_ids, most))
        fit = partial(_fit_lengths, lengths, len(self._checked_ids))
        self._checked_offsets = CheckedNumbers(files, f"{name}.offsets", np.int64, fit)
        self._ids, self._offsets = self._checked_ids.unverified, self._checked_offsets.unverified
        self._pairs = len(self._offsets) - 1
        self._verified = bytearray(-(-self._pairs // _PAGE))

    def __getitem__(self, index: int) -> np.ndarray:
        """The ids of a pair. Training calls this for each pair of every batch, so every microsecond
        counts."""
        if not self._verified[index // _PAGE]:
            self._verify(index // _PAGE)
        offsets = self._offsets
        return self._ids[offsets[index] : offsets[index + 1]]

    def begin(self, index: int) -> int:
        """The number of ids in the shard before a pair."""
        return self._checked_offsets[index]

    def check(self) -> None:
        self._checked_offsets.whole()
        self._checked_ids.whole()

    def _verify(self, page: int) -> None:
        first = page * _PAGE
        offsets = self._checked_offsets.part(first, min(first + _PAGE, self._pairs) + 1)
        self._checked_ids.part(int(offsets[0]), int(offsets[-1]))
        self._verified[page] = 1


class PairStore:
    """Read-only pairs of raw ids (no special tokens). `pieces` are the vocabulary sizes of source and
    target."""

    def __init__(
        self, files: StoreFiles, name: str, meta: StoreMeta, pieces: tuple[int, int] = (1 << 32, 1 << 32)
    ) -> None:
        check_meta(files, name, meta)
        self.corpora, self._names = meta.corpora, meta.names
        self.linked = meta.linked
        self._files, self._name, self._meta, self._pieces = files, name, meta, pieces
        self._size = meta.pairs
        self._starts = list(accumulate((shard.pairs for shard in meta.shards), initial=0))
        self._tgt_starts = list(accumulate((shard.tgt_tokens for shard in meta.shards), initial=0))
        self._lengths = {
            side: CheckedNumbers(
                files,
                f"{name}.{side}.lengths",
                np.int32,
                _are_link_lengths if side == LINK_SIDE else _are_lengths,
            )
            for side in dtypes_of(meta)
        }
        self._lines = CheckedNumbers(files, f"{name}.lines", np.int64)
        self._documents = CheckedNumbers(files, f"{name}.documents", np.int64) if meta.documents else None
        self._shards: list[dict[str, _Side] | None] = [None] * max(1, len(meta.shards))

    def __len__(self) -> int:
        return self._size

    @property
    def opened(self) -> int:
        """Number of shards that have been read from."""
        return sum(shard is not None for shard in self._shards)

    @property
    def src_lengths(self) -> np.ndarray:
        return self._lengths["src"].whole()

    @property
    def tgt_lengths(self) -> np.ndarray:
        return self._lengths["tgt"].whole()

    @property
    def lines(self) -> np.ndarray:
        """The line number of each pair in its corpus."""
        return self._lines.whole()

    @property
    def documents(self) -> np.ndarray | None:
        """The document number of each pair. It is unique within the corpus."""
        return None if self._documents is None else self._documents.whole()

    def src(self, index: int) -> np.ndarray:
        return self._side("src", index)

    def tgt(self, index: int) -> np.ndarray:
        return self._side("tgt", index)

    def tgt_begin(self, index: int) -> int:
        """The number of target ids before a pair. For the number of pairs: the total."""
        number = min(bisect_right(self._starts, index), len(self._shards)) - 1
        return self._tgt_starts[number] + self._shard(number)["tgt"].begin(index - self._starts[number])

    def links(self, index: int) -> np.ndarray:
        """L 2: the indices of linked source and target words. Empty without alignments."""
        return self._side(LINK_SIDE, index).reshape(-1, 2)

    def origin(self, index: int) -> str:
        """The origin of a pair: `a.en:17`."""
        corpus = bisect_right([corpus.end for corpus in self.corpora], index)
        return f"{self._names[corpus]}:{self._lines[index]}"

    def check(self) -> None:
        """Verify the whole store."""
        for numbers in (*self._lengths.values(), self._lines, self._documents):
            if numbers is not None:
                numbers.whole()
        for number in range(len(self._shards)):
            for side in self._open(number).values():  # not kept open: there may be many
                side.check()

    def _side(self, side: str, index: int) -> np.ndarray:
        if not 0 <= index < self._size:
            raise IndexError(f"pair {index} of {self._size}")
        number = bisect_right(self._starts, index) - 1
        return (self._shards[number] or self._shard(number))[side][index - self._starts[number]]

    def _shard(self, number: int) -> dict[str, _Side]:
        found = self._shards[number]
        if found is None:
            found = self._shards[number] = self._open(number)
        return found

    def _open(self, number: int) -> dict[str, _Side]:
        meta, start, dtypes = self._meta, self._starts[number], dtypes_of(self._meta)
        name = shard_name(self._name, number) if meta.shards else self._name
        end = start + (meta.shards[number].pairs if meta.shards else meta.pairs)
        most = {"src": self._pieces[0], "tgt": self._pieces[1], LINK_SIDE: 1 << 32}

        def side_of(side: str) -> _Side:
            lengths = self._lengths[side]
            return _Side(
                self._files, f"{name}.{side}", dtypes[side], lambda: lengths.whole()[start:end], most[side]
            )

        return {side: side_of(side) for side in dtypes}


def _are_ids(most: int, ids: np.ndarray, begin: int, end: int) -> bool:
    return int(ids[begin:end].max()) < most


def _fit_lengths(
    lengths: Callable[[], np.ndarray], ids: int, offsets: np.ndarray, begin: int, end: int
) -> bool:
    """Whether the offsets grow by the lengths, from 0 to the number of ids."""
    before = max(0, begin - 1)
    right_ends = (begin > 0 or offsets[0] == 0) and (end < len(offsets) or offsets[-1] == ids)
    return bool(right_ends and np.array_equal(np.diff(offsets[before:end]), lengths()[before : end - 1]))


def _are_lengths(lengths: np.ndarray, begin: int, end: int) -> bool:
    return int(lengths[begin:end].min()) >= 0


def _are_link_lengths(lengths: np.ndarray, begin: int, end: int) -> bool:
    """Whether the lengths are even: a link is two numbers."""
    return _are_lengths(lengths, begin, end) and not (lengths[begin:end] % 2).any()


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
