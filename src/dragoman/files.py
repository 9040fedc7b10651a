"""Durable files: each one is there as a whole or not at all, and stays there after a power cut.

Everything that dragoman keeps is written through this module, with torch and without.

    write_new          a new file, forced to disk
    replace_file       the bytes of a file, exchanged at once
    replacing          the same as a stream
    new_directory      a directory that gets its name when everything in it is on the disk
    scratch_directory  a directory that is gone afterwards
    open_regular       a file to read, and nothing that could wait for ever
    read_regular       its bytes, no more of them than a limit

What is not complete has a hidden name beside its target (`unfinished.py`); every writer first removes what
dead processes have left there. Errors of the system are OSErrors that name the target; `explained` turns
them into one sentence. System calls go through the module `os`, so that the tests can let each of them fail.
"""

import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import BufferedReader, BufferedWriter
from pathlib import Path
from shutil import rmtree
from typing import IO, BinaryIO, NamedTuple

from dragoman import system
from dragoman.errors import UserError
from dragoman.unfinished import (
    claimed,
    final_name,
    moved_aside,
    open_to_lock,
    remove_all_unfinished,
    remove_unfinished,
    try_lock,
    unfinished_name,
)

__all__ = [
    "Written",
    "discard",
    "explained",
    "final_name",
    "hash_file",
    "make_directories",
    "move",
    "new_directory",
    "open_regular",
    "open_to_append",
    "read_regular",
    "remove_all_unfinished",
    "remove_unfinished",
    "replace_file",
    "replacing",
    "scratch_directory",
    "sync_directory",
    "sync_file",
    "sync_tree",
    "try_lock",
    "write_new",
]

_KINDS = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EACCES)


class Written(NamedTuple):
    size: int
    sha256: str


def open_regular(path: Path) -> BufferedReader:
    """Open a file to read its bytes. A directory, named pipe, socket or device is a UserError.

    Opening a named pipe that nobody writes to would wait for ever. Symbolic links are followed. A file that
    is missing or may not be read is the OSError of the system: the caller knows what the file was for.
    """
    return os.fdopen(_open_regular(path, os.O_RDONLY), "rb")


def open_to_append(path: Path, readable: bool = False) -> BufferedWriter:
    """The same to write at the end of a file, which is made if it is missing. With `readable` its descriptor
    may be read from too: Windows lets nobody else read what this process has locked."""
    access = os.O_RDWR if readable else os.O_WRONLY
    return os.fdopen(_open_regular(path, access | os.O_APPEND | os.O_CREAT), "ab")


def read_regular(path: Path, limit: int) -> bytes:
    """The bytes of a file, opened as `open_regular` does. More than `limit` bytes are a UserError, and no
    memory is taken for them."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > limit else file.read(limit + 1)
    if max(size, len(data)) > limit:
        raise UserError(f"{path}: too large: {max(size, len(data)):,} bytes, and {limit:,} are allowed here")
    return data


def hash_file(path: Path) -> str:
    """SHA-256 of the bytes of a file, opened as `open_regular` does."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _open_regular(path: Path, flags: int) -> int:
    with suppress(FileNotFoundError):  # to open some devices has effects, so look first
        _refuse_unless_regular(path, path.stat().st_mode)
    descriptor = os.open(path, flags | system.WITHOUT_WAITING | system.BINARY, 0o666)
    try:
        _refuse_unless_regular(path, os.fstat(descriptor).st_mode)  # it may have been exchanged since
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_unless_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise UserError(f"{path}: this is {_KINDS.get(stat.S_IFMT(mode), 'a device')}, not a file")


@contextmanager
def explained(path: Path, done: str = "written") -> Iterator[None]:
    """An error of the system while `path` is written, or read, becomes one sentence."""
    try:
        yield
    except OSError as error:
        named = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else path
        path, about, reason = final_name(path), str(final_name(named)), error.strerror or str(error)
        if isinstance(error, FileExistsError):
            raise UserError(f"{about}: {reason}; choose another directory with --out") from error
        if about == str(path) or about.startswith(f"{path}{os.sep}"):
            raise UserError(f"{about}: cannot be {done} ({reason})") from error
        raise UserError(f"{about}: {reason}") from error


def write_new(path: Path, chunks: Iterable[bytes | memoryview], mode: int = 0o666) -> Written:
    """Write a file that must not exist yet, and force its bytes to disk. Its name is not forced."""
    size, digest = 0, hashlib.sha256()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.BINARY, mode)
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


def replace_file(path: Path, data: bytes, mode: int | None = None) -> None:
    """Replace a file atomically: a reader sees the old or the new contents, never a part of them."""
    with replacing(path, mode) as file:
        file.write(data)


@contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` when the `with` block ends without an error.

    Without `mode` the new file has the permissions of the old one, or those that the umask leaves. A symbolic
    link stays, and what it points to is replaced. Anything but a file at `path` is a UserError.
    """
    path, old_mode = _file_to_replace(path)
    permissions = old_mode if mode is None else mode
    remove_unfinished(path)

    def create(temporary: Path) -> int:
        allowed = 0o666 if permissions is None else permissions
        return os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | system.BINARY, allowed)

    with claimed(path, create) as claim:
        if permissions is not None:
            with suppress(PermissionError):  # some file systems have no permissions
                system.change_permissions(claim.descriptor, permissions)
        with os.fdopen(claim.descriptor, "w+b", closefd=False) as file:
            yield file
            sync_file(file)
        if system.WINDOWS:
            claim.release()  # an open file cannot be renamed there
        os.replace(claim.entry, path)  # noqa: PTH105
        sync_directory(path.parent)


def _file_to_replace(path: Path) -> tuple[Path, int | None]:
    """The file itself, and its permissions where it exists."""
    file = path.resolve() if path.is_symlink() else path
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return file, None
    _refuse_unless_regular(path, mode)
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return file, stat.S_IMODE(mode)


@contextmanager
def new_directory(path: Path, keep_existing: bool = False, replace_existing: bool = False) -> Iterator[Path]:
    """A directory to fill, which gets the name `path` when the `with` block ends without an error.

    An empty directory at `path` is replaced. Anything else there raises FileExistsError, at once, or in the
    end where another process was quicker. With `keep_existing` the directory of the other process stays and
    this one is dropped; with `replace_existing` the old directory goes when the new one is complete.
    """
    path = path.resolve() if path.is_symlink() or not path.name else path
    make_directories(path.parent)
    remove_unfinished(path)
    if not (keep_existing or replace_existing):
        _refuse_occupied(path)
    with claimed(path, _make_and_open) as claim:
        yield claim.entry
        sync_tree(claim.entry)
        with moved_aside(path) if replace_existing else nullcontext():
            try:
                _remove_empty(path)
                os.rename(claim.entry, path)  # noqa: PTH104
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
                if not keep_existing:
                    what = "another process has just written it"
                    raise FileExistsError(errno.EEXIST, what, str(path)) from None
            sync_directory(path.parent)


def _remove_empty(path: Path) -> None:
    """Windows renames nothing to a name that is taken, be it by an empty directory."""
    if system.WINDOWS:
        with suppress(OSError):
            path.rmdir()


def _refuse_occupied(path: Path) -> None:
    if os.path.lexists(path) and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(errno.EEXIST, "this exists already and is not empty", str(path))
    if path.resolve() == Path.cwd():
        raise FileExistsError(errno.EEXIST, "this is the current directory", str(path))


def _make_and_open(temporary: Path, mode: int = 0o777) -> int:
    os.mkdir(temporary, mode)  # noqa: PTH102
    try:
        return open_to_lock(temporary)
    except OSError:
        rmtree(temporary, ignore_errors=True)
        raise


@contextmanager
def scratch_directory(within: Path | None = None) -> Iterator[Path]:
    """A directory in `within`, or in the system's folder for temporary files, removed in the end. If the
    process is killed, the next one that asks for a scratch directory there removes it."""
    if within is not None:
        make_directories(within)
    name = Path(within or tempfile.gettempdir(), f"dragoman-{system.user()}")
    remove_unfinished(name)
    with claimed(name, lambda temporary: _make_and_open(temporary, 0o700)) as claim:
        yield claim.entry


def make_directories(path: Path) -> None:
    """Make a directory and those above it that are missing; each name is forced to disk."""
    if not path.is_dir():
        make_directories(path.parent)
        try:
            os.mkdir(path)  # noqa: PTH102
        except FileExistsError:
            if not path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)) from None
        sync_directory(path.parent)


def beside(directory: Path, ending: str) -> Path:
    """A neighbour of a directory, with an ending after its name; the directory may be called `.` too."""
    named = directory.resolve() if directory.name in ("", "..") else directory
    if not named.name:
        raise UserError(f"{directory}: this is the root of all directories; choose another")
    return named.with_name(named.name + ending)


def move(path: Path, target: Path) -> None:
    """Give a file or directory another name in its directory, and force that to disk. A file or an empty
    directory at `target` is replaced."""
    os.replace(path, target)  # noqa: PTH105
    sync_directory(target.parent)


def discard(directory: Path) -> None:
    """Delete a directory. It is renamed first, so that no process sees a part of it."""
    temporary = unfinished_name(directory)
    move(directory, temporary)
    rmtree(temporary, ignore_errors=True)


def sync_file(file: IO[bytes]) -> None:
    """Force what was written to an open file to disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_tree(directory: Path) -> None:
    """Force every file below a directory to disk, then the names in it."""
    for parent, _, names in os.walk(directory, topdown=False):
        for name in names:
            path = Path(parent, name)
            if stat.S_ISREG(path.lstat().st_mode):
                _sync(path)
        sync_directory(Path(parent))


def sync_directory(path: Path) -> None:
    """Force the names in a directory to disk: a rename is only then certain to survive a power cut. Some file
    systems cannot, and some directories may be written to and not read."""
    if system.WINDOWS:  # it opens no directories
        return
    try:
        _sync(path)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR if system.WINDOWS else os.O_RDONLY)  # Windows syncs who may write
    try:
        os.fsync(descriptor)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        os.close(descriptor)
