"""Find duplicates among more 64-bit hashes than fit into memory, and write them as a sorted set.

Hashes are distributed by their leading bits into partitions that fit into memory. Equal hashes are in the
same partition, and sorted partitions written in order are sorted as a whole.
"""

import tempfile
from array import array
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import numpy as np

from dragoman.data.hashed import HashedWriter

_PARTITION = 1 << 21
"""Number of hashes that are sorted at once: about 100 MiB, sorting included."""
_CHUNK = 1 << 20


class NumberWriter:
    """Writes numbers of one machine type to a file, buffered."""

    def __init__(self, path: Path, typecode: str) -> None:
        self._file = path.open("wb")
        self._typecode = typecode
        self._waiting = array(typecode)

    def append(self, value: int) -> None:
        self._waiting.append(value)
        if len(self._waiting) >= 1 << 16:
            self._flush()

    def _flush(self) -> None:
        self._waiting.tofile(self._file)
        self._waiting = array(self._typecode)

    def __enter__(self) -> "NumberWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self._file.close()


def map_numbers(path: Path, dtype: np.dtype | type, *, writable: bool = False) -> np.ndarray:
    """A file of numbers as a memory-mapped array."""
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return np.empty(0, dtype=dtype)
    # Return a plain array: slices of np.memmap cost several times more.
    return np.memmap(path, dtype=dtype, mode="r+" if writable else "r").view(np.ndarray)


def mark_repeats(hashes: np.ndarray, codes: np.ndarray, code: int, scratch: Path) -> int:
    """Set codes[i] to `code` for each pair whose hash occurred earlier at a pair with code 0. Returns the
    number of codes set."""
    marked = 0
    for part, indices in _partitions(hashes, codes, scratch):
        order = np.argsort(part, kind="stable")  # stable: the first of equal hashes stays first
        ordered = part[order]
        repeats = order[1:][ordered[1:] == ordered[:-1]]
        codes[indices[repeats]] = code
        marked += len(repeats)
    return marked


def write_sorted_set(hashes: np.ndarray, codes: np.ndarray, out: HashedWriter, scratch: Path) -> None:
    """Write the distinct hashes of the pairs with code 0, in ascending order."""
    for part, _ in _partitions(hashes, codes, scratch):
        out.write(np.unique(part))


def contains(sorted_hashes: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """Whether each of `hashes` is in the sorted set."""
    if len(sorted_hashes) == 0:
        return np.zeros(len(hashes), dtype=bool)
    places = np.searchsorted(sorted_hashes, hashes)
    return sorted_hashes[np.minimum(places, len(sorted_hashes) - 1)] == hashes


def _partitions(
    hashes: np.ndarray, codes: np.ndarray, scratch: Path
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Partitions of the pairs with code 0, as (hashes, indices). Partitions are in ascending order of their
    hashes; pairs keep their order inside each."""
    bits = max(0, (len(hashes) - 1) // _PARTITION).bit_length()
    if bits == 0:
        indices = np.flatnonzero(codes == 0)
        yield hashes[indices], indices
        return
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        paths = [Path(directory) / str(part) for part in range(1 << bits)]
        for start in range(0, len(hashes), _CHUNK):
            indices = start + np.flatnonzero(codes[start : start + _CHUNK] == 0)
            chunk = hashes[indices]
            part = (chunk >> np.uint64(64 - bits)).astype(np.int64)
            order = np.argsort(part, kind="stable")
            rows = np.stack([chunk[order], indices[order].astype(np.uint64)], axis=1)
            ends = np.cumsum(np.bincount(part, minlength=len(paths)))
            for path, own in zip(paths, np.split(rows, ends[:-1]), strict=True):
                with path.open("ab") as file:
                    own.tofile(file)
        for path in paths:
            rows = np.fromfile(path, dtype=np.uint64).reshape(-1, 2)
            path.unlink()
            yield rows[:, 0].copy(), rows[:, 1].astype(np.int64)
