"""Numbers in a memory-mapped file. Each block is verified before its numbers are used."""

import mmap
import os
import weakref
from collections.abc import Callable

import numpy as np

from dragoman.data.hashed import DamagedStore, StoreFiles

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
