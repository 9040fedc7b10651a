"""The file operations of a process that change something: counted, and one of them chosen to be the last, or
to fail.

Every such call goes through the module `os` or through `io.open`, and both are replaced in a forked child.
What native code writes through a file that Python has opened is not seen piece by piece; its opening is.
"""

import builtins
import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

_BY_PATH = ("rename", "replace", "link", "symlink", "unlink", "remove", "mkdir", "rmdir", "truncate")
_TWO_PATHS = ("rename", "replace", "link", "symlink")
_BY_DESCRIPTOR = ("write", "fsync", "fdatasync", "ftruncate")
_TO_CHANGE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
NEEDS_SPACE = ("open", "write", "mkdir", "link", "symlink")

Fail = Callable[[str, str], None]
"""Gets the name of the operation and its path; it raises, ends the process, or does nothing."""


class Operations:
    """Of this process below a directory, from `install` on."""

    def __init__(self, below: Path) -> None:
        self.below = f"{os.path.realpath(below)}/"
        self.count = 0
        self.unsynced: dict[str, int] = {}
        """Files with bytes that a power cut may take, and how many bytes of each are on the disk."""
        self.fail: Fail = lambda _name, _path: None
        self._real = {name: getattr(os, name) for name in (*_BY_PATH, *_BY_DESCRIPTOR, "open")}

    def kill_at(self, number: int, half_a_write: bool = False, lose_pages: bool = False) -> None:
        """End the process before the operation of this number, after half of it if it is a write."""

        def fail(name: str, _path: str) -> None:
            if self.count < number or (name == "write" and half_a_write and self.count == number):
                return
            if lose_pages:
                self.forget_unsynced()
            os.kill(os.getpid(), signal.SIGKILL)

        self.fail, self._half_at = fail, number if half_a_write else 0

    def refuse_from(self, number: int, error: int, names: tuple[str, ...] | None = None) -> None:
        """Let all operations from this number on fail, or those of some names."""

        def fail(name: str, path: str) -> None:
            if self.count >= number and (names is None or name in names):
                raise OSError(error, os.strerror(error), path)

        self.fail = fail

    def refuse_one(self, number: int, error: int) -> None:
        def fail(_name: str, path: str) -> None:
            if self.count == number:
                raise OSError(error, os.strerror(error), path)

        self.fail = fail

    def forget_unsynced(self) -> None:
        """What has not been forced to disk is lost; names stay, as on most file systems."""
        for path, size in self.unsynced.items():
            if os.path.isfile(path) and os.path.getsize(path) > size:  # noqa: PTH113, PTH202
                self._real["truncate"](path, size)

    _half_at = 0

    def _before(self, name: str, path: str, data: Any = None) -> Any:
        """Count an operation on a path of ours. What is returned is written in place of `data`."""
        if not path.startswith(self.below):
            return data
        self.count += 1
        self.fail(name, path)
        if name == "write" and self.count == self._half_at:
            return memoryview(data).cast("B")[: max(1, memoryview(data).nbytes // 2)]
        return data

    def _touch(self, path: str, size: int | None = None) -> None:
        if path.startswith(self.below) and path not in self.unsynced:
            self.unsynced[path] = os.path.getsize(path) if size is None else size  # noqa: PTH202

    def install(self) -> None:
        for name in _BY_PATH:
            setattr(os, name, self._path_operation(name))
        for name in _BY_DESCRIPTOR:
            setattr(os, name, self._descriptor_operation(name))
        os.open = self._os_open
        io.open = builtins.open = self._file_opener()

    def _path_operation(self, name: str) -> Callable[..., Any]:
        real, two = self._real[name], name in _TWO_PATHS

        def operation(*args: Any, **named: Any) -> Any:
            folder = named.get("dst_dir_fd", named.get("dir_fd"))
            path = _absolute(args[1] if two else args[0], folder)
            self._before(name, path)
            result = real(*args, **named)
            if name in ("rename", "replace"):
                self._renamed(_absolute(args[0], named.get("src_dir_fd")), path)
            elif name in ("unlink", "remove"):
                self.unsynced.pop(path, None)
            return result

        return operation

    def _renamed(self, old: str, new: str) -> None:
        moved = {p: s for p, s in self.unsynced.items() if p == old or p.startswith(f"{old}/")}
        self.unsynced.pop(new, None)
        for path, size in moved.items():
            del self.unsynced[path]
            self.unsynced[new + path[len(old) :]] = size

    def _descriptor_operation(self, name: str) -> Callable[..., Any]:
        real = self._real[name]

        def operation(descriptor: Any, *args: Any) -> Any:
            path = _path_of(descriptor if isinstance(descriptor, int) else descriptor.fileno())
            if name == "write":
                args = (self._before(name, path, args[0]), *args[1:])
                self._touch(path)
            else:
                self._before(name, path)
            result = real(descriptor, *args)
            if name in ("fsync", "fdatasync"):
                self.unsynced.pop(path, None)
            return result

        return operation

    def _os_open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if not flags & _TO_CHANGE:
            return self._real["open"](path, flags, mode, dir_fd=dir_fd)
        where = _absolute(path, dir_fd)
        self._before("open", where)
        new = not os.path.exists(where) or flags & os.O_TRUNC  # noqa: PTH110
        descriptor = self._real["open"](path, flags, mode, dir_fd=dir_fd)
        if not os.path.isdir(where):  # noqa: PTH112
            self._touch(where, 0 if new else None)
        return descriptor

    def _file_opener(self) -> Callable[..., Any]:
        real_open, watch = io.open, self

        class Counted(io.FileIO):
            path = ""

            def write(self, data: Any) -> int:
                data = watch._before("write", self.path, data)
                watch._touch(self.path)
                return super().write(data)

            def truncate(self, size: int | None = None) -> int:
                watch._before("truncate", self.path)
                return super().truncate(size)

        def opener(
            file: Any,
            mode: str = "r",
            buffering: int = -1,
            encoding: str | None = None,
            errors: str | None = None,
            newline: str | None = None,
            closefd: bool = True,
            opener: Any = None,
        ) -> Any:
            path = _path_of(file) if isinstance(file, int) else _absolute(file, None)
            if not set(mode) & set("wax+") or not path.startswith(watch.below):
                return real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
            if not isinstance(file, int):
                watch._before("open", path)
            new = not os.path.exists(path) or "w" in mode  # noqa: PTH110
            raw = Counted(file, mode.replace("b", "").replace("t", ""), closefd, opener)
            raw.path = path
            watch._touch(path, 0 if new else None)
            if buffering == 0:
                return raw
            size = io.DEFAULT_BUFFER_SIZE if buffering < 2 else buffering
            binary = io.BufferedRandom(raw, size) if "+" in mode else io.BufferedWriter(raw, size)
            if "b" in mode:
                return binary
            text = io.TextIOWrapper(binary, encoding, errors, newline, line_buffering=buffering == 1)
            text.mode = mode  # type: ignore[misc]
            return text

        return opener


def _absolute(path: Any, folder: int | None) -> str:
    if isinstance(path, int):
        return _path_of(path)
    name = os.fsdecode(path)
    if folder is not None:
        name = os.path.join(_path_of(folder), name)  # noqa: PTH118
    return os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name))  # noqa: PTH118, PTH119, PTH120


def _path_of(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
    except OSError:
        return ""
