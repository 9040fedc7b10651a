"""Files hashed block by block, so that damage is found and located without reading the whole file.

    train.src.ids   │ block 0 │ block 1 │ … │ the rest │        each block has its SHA-256

`OutputFiles` hashes files while they are written. `StoreFiles` compares the files of a directory with the
known sizes and hashes.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import numpy as np

from dragoman import system
from dragoman.errors import UserError

BLOCK_BYTES = 1 << 18
"""Size of a block in bytes. Larger blocks mean that more unused data are read; smaller blocks mean a larger
table of hashes, which every process reads (24 MB for a billion pairs). See `benchmarks/verify_cost.py`."""
DIGEST = 32
"""Size of a SHA-256 in bytes."""
_AT_ONCE = 16
"""Number of blocks that a thread verifies per job."""


class DamagedStore(UserError):
    """Prepared data that differ from what was written. Preparing them again helps."""

    def __init__(self, fact: str) -> None:
        super().__init__(f"{fact}; give the command that prepared these data again: it prepares them anew")
        self.fact = fact


def fact_of(error: UserError) -> str:
    """The text of an error without the advice."""
    return error.fact if isinstance(error, DamagedStore) else str(error)


class Hashed(NamedTuple):
    """Size and hashes of a file as it was written."""

    size: int
    digests: bytes
    """The SHA-256 of its blocks, concatenated."""


class HashedWriter:
    """A new file whose blocks are hashed while they are written."""

    def __init__(self, path: Path, block: int) -> None:
        self._descriptor: int | None = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.BINARY, 0o666
        )
        self._block, self._size = block, 0
        self._digests, self._current = bytearray(), hashlib.sha256()

    def write(self, data: bytes | np.ndarray) -> None:
        assert self._descriptor is not None, "the file is open"
        view = np.ascontiguousarray(data).data if isinstance(data, np.ndarray) else memoryview(data)
        rest = view.cast("B") if view.nbytes else memoryview(b"")
        while len(rest):
            part = rest[: self._block - self._size % self._block]
            self._current.update(part)
            self._size += len(part)
            rest = rest[len(part) :]
            while len(part):
                part = part[os.write(self._descriptor, part) :]
            if self._size % self._block == 0:
                self._digests += self._current.digest()
                self._current = hashlib.sha256()

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @property
    def hashed(self) -> Hashed:
        """Size and hashes of what has been written so far."""
        tail = self._current.digest() if self._size % self._block else b""
        return Hashed(self._size, bytes(self._digests) + tail)


class OutputFiles:
    """The files of a store while they are written, in one or several directories. They are closed at the end
    of the `with` block."""

    def __init__(self) -> None:
        self.block = BLOCK_BYTES
        self._writers: dict[str, HashedWriter] = {}
        self._found: dict[str, Hashed] = {}

    def create(self, path: Path) -> HashedWriter:
        assert path.name not in self._writers, "names are unique, wherever the files are"
        writer = self._writers[path.name] = HashedWriter(path, self.block)
        return writer

    def add(self, path: Path) -> None:
        """Add the hashes of a small file that was written elsewhere."""
        data = path.read_bytes()
        digests = (
            hashlib.sha256(data[at : at + self.block]).digest() for at in range(0, len(data), self.block)
        )
        self._found[path.name] = Hashed(len(data), b"".join(digests))

    @property
    def hashed(self) -> dict[str, Hashed]:
        found = self._found | {name: writer.hashed for name, writer in self._writers.items()}
        return dict(sorted(found.items()))

    def __enter__(self) -> "OutputFiles":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in self._writers.values():
            writer.close()


@dataclass(frozen=True)
class StoreFiles:
    """The files of a store that is read."""

    directory: Path
    hashed: Mapping[str, Hashed]
    """Size and hashes per file. The digests are empty for stores of an earlier version."""
    block: int = BLOCK_BYTES
    verifiable: bool = True
    """Whether every byte of the store has a hash."""

    def size(self, name: str) -> int:
        """Size in bytes of a file that the store must have."""
        if name not in self.hashed:
            raise DamagedStore(f"{self.directory}: damaged: it has no {name}")
        return self.hashed[name].size

    def open(self, name: str) -> int:
        """Open a file of the right size and return its descriptor."""
        with self._readable(name):
            self._refuse_other_size(name, (self.directory / name).stat())
            descriptor = os.open(self.directory / name, os.O_RDONLY | system.WITHOUT_WAITING | system.BINARY)
        try:
            self._refuse_other_size(name, os.fstat(descriptor))  # the file may have been replaced in between
        except DamagedStore:
            os.close(descriptor)
            raise
        return descriptor

    def check_size(self, name: str) -> None:
        with self._readable(name):
            self._refuse_other_size(name, (self.directory / name).stat())

    def check_sizes(self) -> None:
        for name in self.hashed:
            self.check_size(name)

    @contextmanager
    def _readable(self, name: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError):
            raise self._other_file(name, "is missing") from None
        except OSError as error:
            raise UserError(f"{self.directory / name}: cannot be read ({error.strerror})") from None

    def _refuse_other_size(self, name: str, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise self._other_file(name, "is none")
        if found.st_size != self.size(name):
            raise self._other_file(name, f"has {found.st_size:,} bytes")

    def _other_file(self, name: str, state: str) -> DamagedStore:
        path = self.directory / name
        link = f" ({path.readlink()})" if path.is_symlink() else ""
        return DamagedStore(f"{path}: damaged: expected {self.size(name):,} bytes, the file {state}{link}")

    def read(self, name: str) -> bytes:
        """The contents of a small file, verified."""
        descriptor = self.open(name)
        try:
            found = [self.read_block(descriptor, name, number) for number in range(self.blocks(name))]
        finally:
            os.close(descriptor)
        return b"".join(found)

    def blocks(self, name: str) -> int:
        return -(-self.size(name) // self.block)

    def read_block(self, descriptor: int, name: str, number: int) -> bytes:
        """The bytes of a block, verified. They are read, not mapped, so that a failing disk causes an error
        and does not kill the process."""
        begin = number * self.block
        length = min(self.block, self.size(name) - begin)
        try:
            data = _pread(descriptor, begin, length)
        except OSError as error:
            raise UserError(
                self._say(name, begin, begin + length, f"cannot be read ({error.strerror})")
            ) from None
        digests = self.hashed[name].digests
        expected = digests[number * DIGEST : (number + 1) * DIGEST]
        if len(data) != length or (digests and hashlib.sha256(data).digest() != expected):
            raise DamagedStore(self._say(name, begin, begin + length, "are damaged"))
        return data

    def findings(self) -> Iterator[UserError]:
        """Errors in the files, by size and by hash: one per contiguous damaged range."""
        jobs: list[tuple[str, int]] = []
        for name in self.hashed:
            try:
                self.check_size(name)
            except UserError as error:
                yield error
            else:
                jobs += [(name, first) for first in range(0, self.blocks(name), _AT_ONCE)]
        damaged: list[tuple[str, int]] = []
        pool = ThreadPoolExecutor(max_workers=min(4, system.usable_cores()))
        try:
            for blocks, unreadable in pool.map(self._look, jobs):
                damaged += blocks
                yield from unreadable
        finally:
            pool.shutdown(cancel_futures=True)  # an interrupt does not wait for the rest
        for name, begin, end in _stretches(damaged):
            end = min(end * self.block, self.size(name))
            yield DamagedStore(self._say(name, begin * self.block, end, "are damaged"))

    def _look(self, job: tuple[str, int]) -> tuple[list[tuple[str, int]], list[UserError]]:
        """Check the next few blocks. Returns the damaged blocks and the errors for unreadable ones."""
        name, first = job
        damaged: list[tuple[str, int]] = []
        unreadable: list[UserError] = []
        try:
            descriptor = self.open(name)
        except UserError as error:
            return [], [error]
        try:
            for number in range(first, min(first + _AT_ONCE, self.blocks(name))):
                try:
                    self.read_block(descriptor, name, number)
                except DamagedStore:
                    damaged.append((name, number))
                except UserError as error:
                    unreadable.append(error)
        finally:
            os.close(descriptor)
        return damaged, unreadable

    def _say(self, name: str, begin: int, end: int, what: str) -> str:
        path = self.directory / name
        link = f" ({path.readlink()})" if path.is_symlink() else ""
        return f"{path}{link}: bytes {begin:,} to {end:,} {what}"


def _stretches(blocks: list[tuple[str, int]]) -> Iterator[tuple[str, int, int]]:
    """Merge consecutive blocks into ranges (file, first, end)."""
    for _, found in groupby(enumerate(blocks), lambda each: (each[1][0], each[1][1] - each[0])):
        stretch = [block for _, block in found]
        yield stretch[0][0], stretch[0][1], stretch[-1][1] + 1


def _pread(descriptor: int, begin: int, length: int) -> bytes:
    """Read up to `length` bytes. The result is shorter only at the end of the file."""
    data = system.read_at(descriptor, length, begin)
    while len(data) < length and (more := system.read_at(descriptor, length - len(data), begin + len(data))):
        data += more  # the system reads at most 2 GiB at once
    return data
