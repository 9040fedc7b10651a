"""Cache of prepared data: found by the fingerprint of their inputs, and prepared again if damaged."""

import logging
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from dragoman.data.hashed import DamagedStore
from dragoman.errors import UserError
from dragoman.files import discard, remove_all_unfinished, try_lock

CACHE = ".prepared"
"""Name of the directory of prepared data, beside the runs."""
T = TypeVar("T")
_ATTEMPTS = 3
_EARLIER = (".unfinished-*", ".damaged-*")
"""Leftovers of earlier versions, with a file `lock` in them or older than that file."""
_GRACE_SECONDS = 3600.0


def has_prepared(cache: Path) -> bool:
    """Whether a directory may hold prepared data."""
    return cache.is_dir() and any(
        entry.is_dir() and not entry.name.startswith(".") for entry in cache.iterdir()
    )


def found_or_made(target: Path, open_whole: Callable[[Path], T], make: Callable[[], T]) -> T:
    """Open what is at `target` if it is whole, else make it.

    Any number of processes may do this for one target at the same time. A process that saw the damaged
    directory may delete what another one has just made, so each process tries several times.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        if target.is_dir():
            try:
                return open_whole(target)
            except DamagedStore as error:
                logging.getLogger("dragoman").warning("%s", f"{error.fact}; the data are prepared anew")
                _discard(target)
        try:
            return make()
        except DamagedStore:
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def _discard(target: Path) -> None:
    try:
        discard(target)
    except FileNotFoundError:
        pass  # another process was quicker
    except OSError as error:
        raise UserError(f"{target}: damaged, and it cannot be removed ({error.strerror})") from None


def remove_killed_preparations(directories: Iterable[Path]) -> None:
    """Delete the leftovers of preparations that were killed."""
    for directory in directories:
        remove_all_unfinished(directory)
        with suppress(OSError):
            for work in [work for pattern in _EARLIER for work in directory.glob(pattern)]:
                if _abandoned(work):
                    shutil.rmtree(work, ignore_errors=True)


def _abandoned(work: Path) -> bool:
    try:
        with (work / "lock").open("rb") as lock:
            return try_lock(lock.fileno()) is True
    except OSError:
        return time.time() - work.stat().st_mtime > _GRACE_SECONDS
