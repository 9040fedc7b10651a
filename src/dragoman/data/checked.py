"""Numbers in a mapped file. A block of it is verified before its first number is used."""

import mmap
import os
import weakref
from collections.abc import Callable

import numpy as np

from dragoman.data.hashed import DamagedStore, StoreFiles

Examine = Callable[[np.ndarray, int, int], bool]
"""Given all numbers, whether those from one place to another make sense beside what else is known."""


class CheckedNumbers:
    """The one way to the numbers of a store.

    What has been verified is remembered, so that it costs nothing the second time. Threads may use it at the
    same time: two of them may verify the same block, which does no harm. `examine` sees every block too, and
    is all there is for stores that have no hashes.
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
        """All numbers. Who takes them from here asks for them in another way before."""
        if size:
            mapped = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
            self.unverified = np.frombuffer(mapped, dtype=dtype)
        else:  # an empty file cannot be mapped
            self.unverified = np.empty(0, dtype=dtype)
        per_block = files.block // dtype.itemsize
        self._shift = per_block.bit_length() - 1
        self._verified = bytearray(files.blocks(name) + 1)
        """A byte a block. The last stands for what comes after the end of the file: nothing."""
        self._verified[-1] = 1

    def __len__(self) -> int:
        return len(self.unverified)

    def __getitem__(self, index: int) -> int:
        if not self._verified[index >> self._shift]:
            self._verify(index >> self._shift, index >> self._shift)
        return self.unverified.item(index)

    def part(self, begin: int, end: int) -> np.ndarray:
        """The numbers from place `begin` to before `end`."""
        first, last = begin >> self._shift, end >> self._shift
        if first != last or not self._verified[first]:
            self._verify(first, last)
        return self.unverified[begin:end]

    def whole(self) -> np.ndarray:
        """All of them."""
        if 0 in self._verified:
            self._verify(0, len(self._verified) - 1)
        return self.unverified

    def _verify(self, first: int, last: int) -> None:
        """Blocks from `first` up to `last`, which may be the one after the last."""
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
