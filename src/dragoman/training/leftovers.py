"""Cleanup after killed processes: unfinished files and directories that no process holds."""

import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from dragoman.files import remove_unfinished
from dragoman.unfinished import hidden_part, is_locked

_ENDS = r"[0-9a-f]{8}\.unfinished|replaced"  # unfinished.py
_ENDS += r"|creating|exporting|new|\d+\.part"  # versions before it
_NAMES = re.compile(rf"\..+\.({_ENDS})|\.unfinished-\w+|\.(saving|removing)-.+", re.DOTALL)
"""The last two are of caches of earlier versions, and of checkpoints."""
_LOCK, _REPLACED = "lock", ".replaced"


def is_leftover(path: Path) -> bool:
    """Whether a path is an unfinished file or directory, by its name."""
    return _NAMES.fullmatch(path.name) is not None


def find_leftovers(directory: Path) -> list[Path]:
    """Unfinished files and directories in a directory and beside it that no process holds."""
    whole = directory.resolve()
    names = "|".join(re.escape(name) for name in {whole.name, hidden_part(whole.name)})
    mine = re.compile(rf"\.({names})\.({_ENDS})")
    own = (entry for entry in _entries(whole.parent) if mine.fullmatch(entry.name))
    found = [entry for entry in (*own, *_below(directory)) if is_leftover(entry)]
    return [entry for entry in found if not _held(entry)]


def remove_leftovers(paths: list[Path]) -> None:
    """Delete them; a directory that was to be replaced, and was not, gets its name back."""
    for path in paths:
        if path.name.endswith(_REPLACED):
            remove_unfinished(path.with_name(path.name[1 : -len(_REPLACED)]))
        elif path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _below(directory: Path) -> Iterator[Path]:
    """Every entry below a directory, without the contents of unfinished directories."""
    for entry in _entries(directory):
        yield entry
        if entry.is_dir() and not entry.is_symlink() and not is_leftover(entry):
            yield from _below(entry)


def _entries(directory: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(directory.iterdir())
    return []


def _held(path: Path) -> bool:
    """Whether a living process has locked it, or the run whose checkpoints it is among."""
    locks = [path]
    if path.is_dir():
        locks.append(path / _LOCK)
    if path.parent.name == "checkpoints":
        locks.append(path.parent.parent / ".lock")
    return any(is_locked(lock) for lock in locks)
