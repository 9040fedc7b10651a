"""Durable files: each one is there as a whole or not at all, and stays there after a power cut.

Everything that dragoman keeps is written through this module, with torch and without.

    write_new       a new file, forced to disk
    replace_file    the bytes of a file, exchanged at once
    replacing       the same as a stream
    new_directory   a directory that gets its name when everything in it is on the disk
    open_regular    a file to read, which is a file and nothing that could wait for ever
    read_regular    its bytes, no more of them than a limit

Unfinished files and directories are hidden files beside their target that end in `.unfinished`, locked by
their process for as long as it lives. `remove_unfinished` deletes those that nobody holds any more.

Every system call goes through the module `os`, so that the tests can let each of them fail in turn.
"""

import fcntl
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from dragoman.errors import UserError

_SUFFIX = ".unfinished"
_KINDS = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}


class Written(NamedTuple):
    size: int
    sha256: str


def hash_file(path: Path) -> str:
    """SHA-256 of its bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read its bytes. A directory, named pipe, socket or device is a UserError.

    Opening a named pipe that nobody writes to would wait for ever. Symbolic links are followed. A file that
    is missing or may not be read is the OSError of the system: the caller knows what the file was for.
    """
    _refuse_unless_regular(path, path.stat().st_mode)  # to open some devices has effects
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        _refuse_unless_regular(path, os.fstat(descriptor).st_mode)  # it may have been exchanged since
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, limit: int) -> bytes:
    """The bytes of a file, opened as `open_regular` does. More than `limit` bytes are a UserError, and no
    memory is taken for them."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > limit else file.read(limit + 1)
    if max(size, len(data)) > limit:
        raise UserError(f"{path}: too large: {max(size, len(data)):,} bytes, and {limit:,} are allowed here")
    return data


def _refuse_unless_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise UserError(f"{path}: this is {_KINDS.get(stat.S_IFMT(mode), 'a device')}, not a file")


def write_new(path: Path, chunks: Iterable[bytes | memoryview], mode: int = 0o644) -> Written:
    """Write a file that must not exist yet, and force its bytes to disk. Its name is not forced."""
    size, digest = 0, hashlib.sha256()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        for chunk in chunks:
            digest.update(chunk)
            rest = memoryview(chunk).cast("B")
            size += len(rest)
            while len(rest):
                rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return Written(size, digest.hexdigest())


def replace_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Whoever reads `path` finds the old bytes or the new ones, never a part of them."""
    with replacing(path, mode) as file:
        file.write(data)


@contextmanager
def replacing(path: Path, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` when the `with` block ends without an error."""
    remove_unfinished(path)
    temporary = _unfinished_name(path)
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            _try_lock(descriptor)
            yield file
            file.flush()
            os.fsync(descriptor)
            os.replace(temporary, path)  # noqa: PTH105
        sync_directory(path.parent)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


@contextmanager
def new_directory(path: Path, keep_existing: bool = False) -> Iterator[Path]:
    """A directory to fill, which gets the name `path` when the `with` block ends without an error.

    An empty directory at `path` is replaced. Anything else there raises FileExistsError, also if another
    process was first; with `keep_existing` the directory of the other process stays and this one is dropped.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_unfinished(path)
    temporary = _unfinished_name(path)
    os.mkdir(temporary)  # noqa: PTH102
    descriptor = os.open(temporary, os.O_RDONLY)
    try:
        _try_lock(descriptor)
        yield temporary
        sync_tree(temporary)
        try:
            os.rename(temporary, path)  # noqa: PTH104
        except OSError:
            if not path.is_dir():
                raise
            if not keep_existing:
                raise FileExistsError(f"{path}: another process has written it") from None
        sync_directory(path.parent)
    finally:
        os.close(descriptor)
        shutil.rmtree(temporary, ignore_errors=True)


def sync_tree(directory: Path) -> None:
    """Force every file below a directory to disk, then the names in it."""
    for parent, _, names in os.walk(directory, topdown=False):
        for name in names:
            descriptor = os.open(Path(parent, name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_directory(Path(parent))


def sync_directory(path: Path) -> None:
    """Force the names in a directory to disk: a rename is only then certain to survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_unfinished(path: Path) -> None:
    """Delete what processes that died while they wrote `path` have left beside it."""
    with suppress(OSError):
        entries = [entry for entry in path.parent.iterdir() if _belongs_to(entry, path)]
        for entry in entries:
            with suppress(OSError):  # another process may be deleting it too
                _remove_if_abandoned(entry)


def _remove_if_abandoned(entry: Path) -> None:
    descriptor = os.open(entry, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        if not _try_lock(descriptor):
            return
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _unfinished_name(path: Path) -> Path:
    return path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}{_SUFFIX}")


def _belongs_to(entry: Path, path: Path) -> bool:
    begin = f".{path.name[:100]}."
    return entry.name.startswith(begin) and len(entry.name) == len(begin) + 8 + len(_SUFFIX)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
