"""Directories that appear whole or not at all, and are found again by what they were made from."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # pragma: no cover  (Windows has no flock; leftovers are then told by their age)
    fcntl = None

_PREFIX = ".unfinished-"
_LOCK = "lock"
_GRACE_SECONDS = 3600.0
"""An unfinished directory without a lock may be one that another process is about to lock."""
_OLD_SECONDS = 7 * 24 * 3600.0


@contextmanager
def unfinished_directory(parent: Path) -> Iterator[Path]:
    """A directory to work in, removed in the end; what is worth keeping is published from inside it.

    Its lock goes when the process goes, whatever ended it, so that others can tell leftovers from work.
    """
    parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(parent)
    work = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    lock = (work / f"{_LOCK}.new").open("wb")
    try:
        _try_lock(lock)
        (work / f"{_LOCK}.new").rename(work / _LOCK)  # there is never a lock file that is not locked
        yield work
    finally:
        lock.close()
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """A directory to be filled inside the `with` block, which becomes `target` when that ends well."""
    with unfinished_directory(target.parent) as work:
        result = work / "result"
        result.mkdir()
        yield result
        publish(result, target)


def publish(result: Path, target: Path) -> None:
    """Give a finished directory its name at once. If another process was first, its stays."""
    for path in sorted(result.iterdir()):
        with path.open("rb") as file:
            os.fsync(file.fileno())
    _fsync_directory(result)
    try:
        result.rename(target)
    except OSError:
        if not target.is_dir():
            raise
    _fsync_directory(target.parent)


def remove_leftovers(parent: Path) -> None:
    """Delete unfinished directories whose process has died."""
    for work in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another process may be deleting it too
            if _abandoned(work):
                shutil.rmtree(work, ignore_errors=True)


def _abandoned(work: Path) -> bool:
    age = time.time() - work.stat().st_mtime
    if fcntl is None:
        return age > _OLD_SECONDS
    try:
        with (work / _LOCK).open("rb") as lock:
            return _try_lock(lock)
    except FileNotFoundError:
        return age > _GRACE_SECONDS


def _try_lock(file: BinaryIO) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _fsync_directory(path: Path) -> None:
    with suppress(OSError):  # not every file system can
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
