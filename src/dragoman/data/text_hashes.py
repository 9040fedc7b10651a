"""Hashes of texts, the same in every process, and files of more numbers or pairs than fit into memory.

Duplicates are found among any number of 64-bit hashes, and written as a sorted set.

Hashes are distributed by their leading bits into partitions that fit into memory. Equal hashes are in the
same partition, and sorted partitions written in order are sorted as a whole.
"""

import hashlib
import re
import struct
import tempfile
import unicodedata
from array import array
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import TracebackType

import numpy as np

from dragoman.data.formats import Pair
from dragoman.data.seeded_random import GOLDEN, splitmix
from dragoman.data.verified_files import HashedWriter

_ASCII_GAPS = "".join(chr(code) if chr(code).isalnum() else " " for code in range(128))
_GAP = re.compile(r"[^\w ]+")
_MAY_HOLD_MARKS = re.compile("[\u0300-\u1fff\u2c00-\U0010ffff]")
"""Code points outside these ranges cannot be combining marks in NFKC: Latin letters and common
punctuation."""
_LAST_MARK = 0x1F000
"""Combining marks lie below this code point, except for variation selectors, which are not letters."""


def normalise(text: str) -> str:
    """NFKC and case-folded, with every run of punctuation, symbols and white space replaced by one space.

    A text of punctuation only keeps it, so that «?» and «!» stay different.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    if folded.isascii():  # the same result as below, faster
        words = folded.translate(_ASCII_GAPS).split()
    else:
        gap = _gap_between_marks() if _MAY_HOLD_MARKS.search(folded) else _GAP
        words = gap.sub(" ", folded.replace("_", " ")).split()
    return " ".join(words or folded.split())


def hash_text(text: str) -> int:
    """64 bits of BLAKE2b. Unlike `hash()`, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "little")


def hash_pair(src: str, tgt: str) -> int:
    return hash_text(f"{src}\0{tgt}")  # no text contains NUL


def mix(hashes: np.ndarray, key: int) -> np.ndarray:
    """Map hashes and a key to other 64-bit numbers, one to one, in an order that looks random
    (splitmix64)."""
    with np.errstate(over="ignore"):
        return splitmix((hashes ^ np.uint64(key % (1 << 64))) + GOLDEN)


@cache
def _gap_between_marks() -> re.Pattern[str]:
    """`\\W` alone would also match combining marks, and with them the vowels of many scripts."""
    marks = "".join(chr(c) for c in range(_LAST_MARK) if unicodedata.category(chr(c)).startswith("M"))
    return re.compile(f"[^\\w {re.escape(marks)}]+")


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


_HEADER = struct.Struct("<QQII")
"""Number and line of the pair, and the sizes of its sides in bytes."""


class SpoolWriter:
    """Writes a file of numbered pairs: the sample that a tokenizer is trained on."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")

    def append(self, number: int, pair: Pair) -> None:
        src, tgt = pair.src.encode("utf-8"), pair.tgt.encode("utf-8")
        self._file.write(_HEADER.pack(number, pair.line, len(src), len(tgt)))
        self._file.write(src)
        self._file.write(tgt)

    def __enter__(self) -> "SpoolWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def read_spool(path: Path) -> Iterator[tuple[int, Pair]]:
    with path.open("rb") as file:
        while header := file.read(_HEADER.size):
            number, line, src, tgt = _HEADER.unpack(header)
            text = file.read(src + tgt)
            yield number, Pair(text[:src].decode("utf-8"), text[src:].decode("utf-8"), line)
