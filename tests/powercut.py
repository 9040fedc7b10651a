"""A disk that forgets: what a power cut would leave of a directory, at every moment of a write.

A disk holds the bytes that a file had when it was last forced to disk, and the names that a directory had
when it was. Of what came later it may hold everything, nothing or a part. `PowerCuts` watches the calls of
`os` and, before each of them, makes the directories that could be found after a power cut:

    names      as they are now · as they were when last forced to disk · one at the top, the other below
    contents   as they are now · as they were when last forced to disk · with half of what came after that
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

Names = Literal["now", "forced", "now at the top", "now below"]
Contents = Literal["now", "forced", "half"]
Tree = bytes | Mapping[str, "Tree"]
"""The bytes of a file, or the names in a directory."""
VARIANTS: tuple[tuple[Names, Contents], ...] = (
    ("now", "now"),
    ("now", "forced"),
    ("now", "half"),
    ("forced", "now"),
    ("forced", "forced"),
    ("now at the top", "now"),
    ("now at the top", "forced"),
    ("now below", "now"),
    ("now below", "forced"),
)
OPERATIONS = ("fsync", "rename", "replace", "link", "mkdir", "unlink", "rmdir", "truncate", "ftruncate")
"""Between these, contents grow and names are added; both are seen before the next of them."""


class PowerCuts:
    """`check` gets a directory as it may be found after a power cut and says what it is, such as "old" or
    "new". It raises an exception where it is half of something."""

    def __init__(
        self, root: Path, check: Callable[[Path], str], scratch: Path, forget_fsync: bool = False
    ) -> None:
        self.root, self.check, self.scratch, self.forget_fsync = root, check, scratch, forget_fsync
        self.failures: list[str] = []
        self._outcomes: dict[str, str] = {}
        self._forced_bytes: dict[int, bytes] = {}
        self._forced_names: dict[int, dict[str, tuple[int, bool]]] = {}
        self._held: dict[int, int] = {}
        """Open descriptors of what the disk knows, so that no new file gets the number of an old one."""
        self._paths = self._walk()
        self._now: dict[int, bytes | dict[str, tuple[int, bool]]] = {}
        for path in self._paths.values():
            self._force(path)

    @property
    def outcomes(self) -> set[str]:
        return set(self._outcomes.values())

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, the power may fail before every call of `os`."""
        with pytest.MonkeyPatch.context() as patch:
            for name in OPERATIONS:
                patch.setattr(os, name, self._watched(name, getattr(os, name)))
            yield
        for descriptor in self._held.values():
            os.close(descriptor)

    def cut(self, moment: str) -> set[str]:
        """What is found if the power fails now."""
        self._paths = self._walk()
        self._now = {
            number: _names(path) if path.is_dir() else path.read_bytes()
            for number, path in self._paths.items()
        }
        return {self._look(moment, names, contents) for names, contents in VARIANTS}

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            if self._busy:
                return real(*args, **named)
            self._busy = True
            try:
                self.cut(f"before os.{name}{args[:1]}")
                if name != "fsync":
                    return real(*args, **named)
                path = self._paths.get(os.fstat(args[0]).st_ino)
                if path is not None and not self.forget_fsync:
                    self._force(path)
            finally:
                self._busy = False

        return call

    _busy = False

    def _walk(self) -> dict[int, Path]:
        return {path.lstat().st_ino: path for path in (self.root, *self.root.rglob("*"))}

    def _force(self, path: Path) -> None:
        number = self._hold(path)
        if path.is_dir():
            self._forced_names[number] = _names(path)
            for entry in path.iterdir():
                self._hold(entry)
        else:
            self._forced_bytes[number] = path.read_bytes()

    def _hold(self, path: Path) -> int:
        number = path.stat().st_ino
        if number not in self._held:
            self._held[number] = os.open(path, os.O_RDONLY)
        return number

    def _look(self, moment: str, names: Names, contents: Contents) -> str:
        tree = self._tree(self.root.stat().st_ino, 0, names, contents)
        key = _digest(tree)
        if key not in self._outcomes:
            shutil.rmtree(self.scratch, ignore_errors=True)
            _write(self.scratch, tree)
            try:
                self._outcomes[key] = self.check(self.scratch)
            except Exception as error:
                self._outcomes[key] = "half"
                self.failures.append(f"{moment}, names {names}, contents {contents}: {error!r}")
        return self._outcomes[key]

    def _tree(self, number: int, depth: int, names: Names, contents: Contents) -> Tree:
        forced = self._forced_names.get(number, {})
        now = self._now.get(number, forced)
        assert isinstance(now, dict)
        as_now = names == "now" or names == ("now below" if depth else "now at the top")
        return {
            name: self._tree(child, depth + 1, names, contents) if is_dir else self._bytes(child, contents)
            for name, (child, is_dir) in sorted((now if as_now else forced).items())
        }

    def _bytes(self, number: int, contents: Contents) -> bytes:
        forced = self._forced_bytes.get(number, b"")
        now = self._now.get(number, forced)
        assert isinstance(now, bytes)
        if contents == "half":
            kept = len(forced) if now.startswith(forced) else 0
            return now[: (kept + len(now)) // 2]
        return now if contents == "now" else forced


def _digest(tree: Tree) -> str:
    below = (
        tree if isinstance(tree, bytes) else repr({name: _digest(one) for name, one in tree.items()}).encode()
    )
    return hashlib.blake2b(below, digest_size=16).hexdigest()


def _names(path: Path) -> dict[str, tuple[int, bool]]:
    with os.scandir(path) as entries:
        return {entry.name: (entry.inode(), entry.is_dir()) for entry in entries}


def _write(path: Path, tree: Tree) -> None:
    if isinstance(tree, bytes):
        path.write_bytes(tree)
        return
    path.mkdir()
    for name, below in tree.items():
        _write(path / name, below)
