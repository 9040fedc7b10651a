"""How large the pages of a Parquet file are when they are unpacked, before anything unpacks them.

A column of a row group is a row of pages, each with a header in Thrift's compact protocol; its second field
is the size of the page unpacked. No cell is longer than the largest page: a page holds the cells themselves,
a dictionary of them, or what each adds to the one before it. The footer has sizes too, which nothing checks.
"""

from collections.abc import Iterator
from typing import IO

from dragoman.errors import UserError

_HEADER_BYTES = (1 << 12, 1 << 16, 1 << 20)
"""Read in this order until a header is whole. Some have the smallest and the largest cell in them."""
_DEPTH = 16
_STOP, _TRUE, _FALSE, _BYTE, _I64, _DOUBLE, _BINARY, _SET, _MAP, _STRUCT = 0, 1, 2, 3, 6, 7, 8, 10, 11, 12
_I32 = 5
_SIZES = (2, 3)
"""The fields of a page header: bytes unpacked, and bytes in the file."""


def unpacked_sizes(file: IO[bytes], begin: int, end: int, path: str) -> Iterator[int]:
    """Unpacked size of each page between two offsets of a file."""
    while begin < end:
        length, unpacked, packed = _header(file, begin, path)
        yield unpacked
        begin += length + packed


def _header(file: IO[bytes], begin: int, path: str) -> tuple[int, int, int]:
    for most in _HEADER_BYTES:
        file.seek(begin)
        try:
            reader = _Reader(file.read(most))
            sizes = reader.numbers()
            unpacked, packed = (sizes[field] for field in _SIZES)
        except IndexError:
            continue  # it is longer
        except (KeyError, ValueError):
            break
        if unpacked < 0 or packed < 0:
            break
        return reader.place, unpacked, packed
    raise UserError(f"{path}: not a Parquet file that can be read (no page at byte {begin:,})")


class _Reader:
    """Reads Thrift's compact protocol. Raises IndexError past the end, ValueError for invalid data."""

    def __init__(self, data: bytes) -> None:
        self._data, self.place = data, 0

    def numbers(self) -> dict[int, int]:
        """The 32-bit fields of the struct that begins here, by their numbers; all else is skipped."""
        found: dict[int, int] = {}
        field = 0
        while (head := self._byte()) != _STOP:
            kind, step = head & 15, head >> 4
            field = field + step if step else self._signed()
            if kind == _I32:
                found[field] = self._signed()
            else:
                self._skip(kind, _DEPTH)
        return found

    def _byte(self) -> int:
        self.place += 1
        return self._data[self.place - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while shift < 70:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise ValueError("a number of more than 64 bits")

    def _signed(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)

    def _jump(self, count: int) -> None:
        self.place += count
        if self.place > len(self._data):
            raise IndexError

    def _skip(self, kind: int, depth: int) -> None:
        if not depth:
            raise ValueError("nested too deeply")
        if kind in (_TRUE, _FALSE):
            return
        if kind == _BYTE:
            self._jump(1)
        elif kind <= _I64:
            self._unsigned()
        elif kind == _DOUBLE:
            self._jump(8)
        elif kind == _BINARY:
            self._jump(self._unsigned())
        elif kind <= _SET:
            head = self._byte()
            self._skip_items([head & 15], head >> 4 if head >> 4 < 15 else self._unsigned(), depth)
        elif kind == _MAP:
            count = self._unsigned()
            kinds = self._byte() if count else 0
            self._skip_items([kinds >> 4, kinds & 15], count, depth)
        elif kind == _STRUCT:
            while (head := self._byte()) != _STOP:
                if not head >> 4:
                    self._signed()
                self._skip(head & 15, depth - 1)
        else:
            raise ValueError(f"no such kind: {kind}")

    def _skip_items(self, kinds: list[int], count: int, depth: int) -> None:
        for _ in range(count):
            for kind in kinds:
                if kind in (_TRUE, _FALSE):  # in a list it has a byte of its own
                    self._jump(1)
                else:
                    self._skip(kind, depth - 1)
