"""Hidden files and directories that a process is still writing, and what dead processes have left of them.

    .NAME.1a2b3c4d.unfinished   will become NAME; locked by its process for as long as it lives
    .NAME.replaced              the old directory NAME, while a new one takes its place; locked too

Locks go with their process however it ends, so whoever gets the lock of such an entry may delete it. On a
file system without locks nobody knows, and the entries stay until a person deletes them. Windows cannot open
directories: there the file `.NAME.1a2b3c4d.unfinished.lock` is locked in place of the directory.
"""

import errno
import functools
import logging
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dragoman import system

_SUFFIX, _REPLACED, _LOCK = ".unfinished", ".replaced", ".lock"
_HIDDEN = re.compile(rf"\.(.*)\.[0-9a-f]{{8}}{re.escape(_SUFFIX)}", re.DOTALL)
_NAME_BYTES = 200
"""Largest number of bytes of the target's name in a hidden name, which has at most 255 bytes in total."""
_ATTEMPTS = 100


class Claim:
    """A hidden entry of this process, and the descriptor that it is locked by."""

    def __init__(self, entry: Path, descriptor: int) -> None:
        self.entry, self.descriptor = entry, descriptor
        self._open = True

    def release(self) -> None:
        """Close the descriptor, and give up the lock with it."""
        if self._open:
            self._open = False
            os.close(self.descriptor)


@contextmanager
def claimed(path: Path, create: Callable[[Path], int]) -> Iterator[Claim]:
    """A new hidden entry for `path`, locked, and deleted in the end if it is still there.

    `create` makes it and opens it. Errors of the system name the target, not the hidden entry.
    """
    temporary = None
    try:
        claim = _claim(path, create)
        temporary = claim.entry
        try:
            yield claim
        finally:
            claim.release()
            with suppress(OSError):
                _delete(temporary)
    except OSError as error:
        _name_target(error, path, temporary)
        raise


def _claim(path: Path, create: Callable[[Path], int]) -> Claim:
    """A process that cleans up may lock or delete the entry before we have locked it: then make another."""
    for _ in range(_ATTEMPTS):
        temporary = unfinished_name(path)
        try:
            descriptor = create(temporary)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and path.parent.is_dir():
                continue  # a directory that was deleted before it could be opened
            _name_target(error, path, temporary)
            raise
        if try_lock(descriptor) is not False and os.path.lexists(temporary):
            return Claim(temporary, descriptor)
        os.close(descriptor)
    raise OSError(errno.EAGAIN, "other processes delete it as soon as it is there", str(path))


def _name_target(error: OSError, path: Path, temporary: Path | None) -> None:
    if error.filename is None:
        error.filename = str(path)
    elif temporary is not None and os.fsdecode(error.filename).startswith(str(temporary)):
        error.filename = str(path) + os.fsdecode(error.filename)[len(str(temporary)) :]
        error.filename2 = None


def final_name(path: Path | str) -> Path:
    """The path of an entry, or of what lies in it, when it will be finished: what a person is told."""
    parts = (found[1] if (found := _HIDDEN.fullmatch(part)) else part for part in Path(path).parts)
    return Path(*parts)


def remove_unfinished(path: Path) -> None:
    """Delete what processes that died while writing `path` have left beside it."""
    begin = f".{hidden_part(path.name)}."
    length = len(unfinished_name(path).name)
    _clean(path.parent, lambda name: name.startswith(begin) and len(name) == length)
    aside = path.with_name(f".{path.name}{_REPLACED}")
    with suppress(OSError):
        if aside.is_dir():
            _with_lock(aside, lambda: _settle(aside, path))


def remove_all_unfinished(directory: Path) -> None:
    """Delete what processes that died have left in a directory."""
    _clean(directory, lambda _name: True)
    with suppress(OSError):
        for aside in directory.glob(f".*{_REPLACED}"):
            remove_unfinished(aside.with_name(aside.name[1 : -len(_REPLACED)]))


def _clean(directory: Path, concerned: Callable[[str], bool]) -> None:
    with suppress(OSError):  # a directory that is missing or cannot be read
        names = [entry.name for entry in directory.iterdir()]
        for name in names:
            entry = directory / name.removesuffix(_LOCK)
            if not (_HIDDEN.fullmatch(entry.name) and concerned(entry.name)):
                continue
            with suppress(OSError):  # another process may be deleting it too
                if name == entry.name:
                    _with_lock(entry, lambda entry=entry: _delete(entry))
                elif not os.path.lexists(entry):
                    _delete(entry)


def _with_lock(entry: Path, act: Callable[[], None]) -> None:
    """Run `act` unless a living process holds the entry. On Windows the file is closed first, because open
    files cannot be deleted there; the entry of a dead process is not locked again."""
    descriptor = open_to_lock(entry)
    try:
        free = try_lock(descriptor)
        if free and not system.WINDOWS:
            act()
    finally:
        os.close(descriptor)
    if free and system.WINDOWS:
        act()
        _delete_lock_file(entry)


def open_to_lock(entry: Path, later: Path | None = None) -> int:
    """A descriptor that a file or directory is locked by, also when its name is `later` another. NFS wants
    files to be open for writing."""
    flags = system.BINARY | system.WITHOUT_WAITING | system.WITHOUT_LINKS
    if not entry.is_dir():
        return os.open(entry, os.O_RDWR | flags)
    if system.WINDOWS:
        return os.open(_lock_file(later or entry), os.O_RDWR | os.O_CREAT | flags)
    return os.open(entry, os.O_RDONLY | flags)


def is_locked(entry: Path) -> bool:
    """Whether a living process holds the entry. True if the lock cannot be determined."""
    try:
        descriptor = open_to_lock(entry)
    except OSError:
        return False
    try:
        return try_lock(descriptor) is not True
    finally:
        os.close(descriptor)


def _lock_file(entry: Path) -> Path:
    return entry.with_name(entry.name + _LOCK)


def _delete_lock_file(entry: Path) -> None:
    """Delete the lock file of a directory on Windows, once the directory is gone."""
    if system.WINDOWS and not os.path.lexists(entry):
        with suppress(OSError):  # another process holds it
            _lock_file(entry).unlink(missing_ok=True)


@contextmanager
def moved_aside(path: Path) -> Iterator[None]:
    """Inside, the directory at `path` has another name. Afterwards it is deleted if a new one has taken its
    place; else it gets its name back. `remove_unfinished` does that for a process that has died inside."""
    if not path.is_dir():
        yield
        return
    aside = path.with_name(f".{path.name}{_REPLACED}")
    shutil.rmtree(aside, ignore_errors=True)
    descriptor = open_to_lock(path, aside)
    try:
        try_lock(descriptor)
        os.rename(path, aside)  # noqa: PTH104
        try:
            yield
        finally:
            _settle(aside, path)
    finally:
        os.close(descriptor)
        _delete_lock_file(aside)


def _settle(aside: Path, path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        os.rename(aside, path)  # noqa: PTH104


def unfinished_name(path: Path) -> Path:
    return path.with_name(f".{hidden_part(path.name)}.{secrets.token_hex(4)}{_SUFFIX}")


def hidden_part(name: str) -> str:
    """The part of the target's name in a hidden name: all of it, unless it is very long."""
    return os.fsencode(name)[:_NAME_BYTES].decode("utf-8", "ignore")


def try_lock(descriptor: int) -> bool | None:
    """False where another process holds the lock, None where this file system has no locks."""
    lock = _locker()
    try:
        return None if lock is None else lock(descriptor, blocking=False)
    except OSError:
        return None


@functools.cache
def _locker() -> Callable[..., bool] | None:
    """Loaded when it is needed: it takes longer than the rest of this file."""
    try:
        from filelock import lock_descriptor
    except ImportError:
        told = "filelock is missing or older than 3.30: two processes could write the same file; update it"
        logging.getLogger("dragoman").warning(told)
        return None
    return lock_descriptor


def _delete(entry: Path) -> None:
    if entry.is_dir():
        shutil.rmtree(entry, ignore_errors=True)
    else:
        entry.unlink(missing_ok=True)
    _delete_lock_file(entry)
