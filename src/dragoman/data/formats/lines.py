"""Strict lines: only `\\n` ends one, whatever else Unicode calls a line separator.

Reading is a stream in constant memory. Bytes that are not text end it with one error that says where.
"""

import gzip
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from io import BufferedReader
from os import fstat
from pathlib import Path

from dragoman.errors import UserError, no_such_file

MAX_LINE = 64 << 20
"""Largest number of bytes in a line. A longer one is not a sentence, and reading it could fill the memory."""
_CHUNK = 1 << 20
_MAX_RATIO = 200
"""Text compresses about four times; gzip can reach a thousand, which only a trap comes near."""
_RATIO_GRACE = 64 << 20
"""Bytes of output from which on the ratio is held against the cap."""
GZIP_MAGIC = b"\x1f\x8b"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


def read_lines(path: str | Path) -> Iterator[str]:
    """The lines of a UTF-8 file, plain or gzip, without `\\n`, one trailing `\\r`, and a leading BOM."""
    return decoded_lines(read_chunks(path), path)


def decoded_lines(chunks: Iterable[bytes], path: str | Path) -> Iterator[str]:
    """The same for bytes from another source; `path` is their name in errors."""
    first_line, offset = 1, 0
    for block in _blocks(chunks, path):
        text = _decode(block, path, first_line, offset)
        if offset == 0:
            text = text.removeprefix("\ufeff")
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()  # the block ended with \n; only the last block of a file may not
        if "\r" in text:
            lines = [line.removesuffix("\r") for line in lines]
        yield from lines
        first_line += len(lines)
        offset += len(block)
    if first_line == 1:
        raise UserError(f"{path}: the file is empty")


@dataclass
class Meter:
    """Progress in bytes on disk: how many have been read, of how many."""

    size: int
    read: int = 0

    def expected(self, done: int) -> int | None:
        """Estimated total number of items, given `done` so far. None: unknown."""
        return max(done, round(done * self.size / self.read)) if self.read else None


_METER: ContextVar[Meter | None] = ContextVar("meter", default=None)


@contextmanager
def metered(files: Iterable[str]) -> Iterator[Meter]:
    """Counts what is read of these files inside, for those who want to know how far they are."""
    size = sum(Path(file).stat().st_size for file in files if Path(file).is_file())
    token = _METER.set(meter := Meter(size))
    try:
        yield meter
    finally:
        _METER.reset(token)


def _count(size: int) -> None:
    if (meter := _METER.get()) is not None:
        meter.read += size


@dataclass(frozen=True)
class HashedFile:
    """A file and its hash, as it was when it was read."""

    sha256: str
    size: int
    modified: int


_HASHES: ContextVar[dict[str, HashedFile] | None] = ContextVar("hashes", default=None)


@contextmanager
def hashed_while_read() -> Iterator[dict[str, HashedFile]]:
    """Collects the SHA-256 of every file that is read completely inside the block, so that it need not be
    read again. Formats that are not read sequentially (Parquet, zip) are excluded."""
    token = _HASHES.set(hashes := {})
    try:
        yield hashes
    finally:
        _HASHES.reset(token)


class _Hashing:
    """Reads a file and hashes what was read."""

    def __init__(self, file: BufferedReader, path: str | Path) -> None:
        self._file, self._path = file, str(path)
        self._status = fstat(file.fileno())
        self._digest, self._size = hashlib.sha256(), 0
        self._hashes = _HASHES.get()

    def read(self, size: int = -1) -> bytes:
        chunk = self._file.read(size)
        if self._hashes is not None:
            self._digest.update(chunk)
            self._size += len(chunk)
            if self._size == self._status.st_size:
                found = HashedFile(self._digest.hexdigest(), self._size, self._status.st_mtime_ns)
                self._hashes[self._path] = found
        return chunk


def read_chunks(path: str | Path) -> Iterator[bytes]:
    """The bytes of a file, unpacked where it is gzip (told by its first two bytes, not by its name)."""
    with open_binary(path) as file:
        packed = file.peek(2).startswith(GZIP_MAGIC)
        source = _Hashing(file, path)
        if not packed:
            while chunk := source.read(_CHUNK):
                _count(len(chunk))
                yield chunk
            return
        guard, before = ExpansionGuard(path), 0
        with _gzip_errors(path), gzip.GzipFile(fileobj=source) as unpacked:  # type: ignore[arg-type]
            while chunk := unpacked.read(_CHUNK):
                guard.check(len(chunk), done := file.tell())
                _count(done - before)
                before = done
                yield chunk


@contextmanager
def open_binary(path: str | Path) -> Iterator[BufferedReader]:
    """Open a file for reading; whatever the system says against it becomes a `UserError`."""
    with _open(path) as file:
        try:
            yield file
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None


def _open(path: str | Path) -> BufferedReader:
    try:
        return Path(path).open("rb")
    except FileNotFoundError:
        raise no_such_file(path) from None
    except IsADirectoryError:
        raise UserError(f"{path}: this is a directory, expected a file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be opened ({error.strerror or error})") from None
    except ValueError:  # a NUL in the name
        raise UserError(f"{str(path)!r}: not a name that a file can have") from None


class ExpansionGuard:
    """Stops the reading of a small file that unpacks to a huge one."""

    def __init__(self, path: str | Path) -> None:
        self._path, self._unpacked = path, 0

    def check(self, unpacked: int, packed_so_far: int) -> None:
        self._unpacked += unpacked
        if self._unpacked > max(_RATIO_GRACE, _MAX_RATIO * packed_so_far):
            raise UserError(
                f"{self._path}: unpacks to more than {_MAX_RATIO} times its size, which text does not:"
                " refused as a decompression bomb (unpack it yourself if you trust it)"
            )


@contextmanager
def _gzip_errors(path: str | Path) -> Iterator[None]:
    try:
        yield
    except EOFError:
        raise UserError(f"{path}: the gzip file is cut off before its end; fetch or pack it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path}: the gzip file is damaged ({error}); fetch or pack it again") from None


def _blocks(chunks: Iterable[bytes], path: str | Path) -> Iterator[bytes]:
    """Pieces of the file of about a chunk each that end after a `\\n` (or at the end of the file)."""
    carry: list[bytes] = []
    carried = num_lines = 0
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            block = b"".join((*carry, chunk[:cut]))
            num_lines += block.count(b"\n")
            yield block
            carry, carried = [], 0
        carry.append(chunk[cut:])
        carried += len(chunk) - cut
        if carried > MAX_LINE:
            size = f"{MAX_LINE >> 20} MiB"
            raise UserError(f"{path}:{num_lines + 1}: the line is longer than {size}; is this a text file?")
    if carried:
        yield b"".join(carry)


def _decode(block: bytes, path: str | Path, first_line: int, offset: int) -> str:
    if offset == 0 and block.startswith(_UTF16_BOMS):
        raise UserError(f"{path}:1: the file is UTF-16 (byte 0); convert it to UTF-8")
    nul = block.find(b"\0")
    if nul >= 0:
        where = _locate(block, nul, path, first_line)
        raise UserError(f"{where}: NUL at byte {offset + nul}; expected UTF-8 text")
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        where = _locate(block, error.start, path, first_line)
        found = f"0x{block[error.start]:02X} at byte {offset + error.start}"
        raise UserError(f"{where}: not valid UTF-8 ({found}); convert the file to UTF-8") from None


def _locate(block: bytes, position: int, path: str | Path, first_line: int) -> str:
    line = first_line + block.count(b"\n", 0, position)
    return f"{path}:{line}"
