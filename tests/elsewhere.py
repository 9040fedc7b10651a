"""Windows and macOS as far as they can be had on Linux: what they lack is taken away.

`without_unix/` takes `fcntl` and `fork` from all processes of a test run (`benchmarks/anywhere.py windows`).
`PREAMBLE` begins a program in a process of its own, and takes more: filelock has no `fcntl` either, and some
calls are missing. (sacreBLEU's portalocker has another way for Windows.) `like_windows` changes the calls of
`os`: directories cannot be opened, open files cannot be renamed, nothing is renamed to a directory that is
there, only who may write can sync, and there are no user numbers, permissions and `pread`.
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import system

PREAMBLE = f"""
{(Path(__file__).parent / "without_unix" / "sitecustomize.py").read_text("utf-8")}
_WITHOUT_FCNTL.append("filelock")
for name in ("fork", "forkpty", "getuid", "pread", "fchmod", "sched_getaffinity"):
    if hasattr(os, name):
        delattr(os, name)
"""


def like_windows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(system, "WINDOWS", True)
    patch.setattr(system, "WITHOUT_WAITING", 0)
    patch.setattr(system, "WITHOUT_LINKS", 0)
    for name in ("fchmod", "getuid", "pread", "sched_getaffinity"):
        patch.delattr(os, name)
    real = {name: getattr(os, name) for name in ("open", "rename", "replace", "unlink", "fsync")}

    def open_no_directory(path: Any, flags: int, mode: int = 0o777, **named: Any) -> int:
        if Path(path).is_dir() and "dir_fd" not in named and not flags & os.O_DIRECTORY:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real["open"](path, flags, mode, **named)

    def moving(move: Callable[..., None], replaces_files: bool) -> Callable[..., None]:
        def call(source: Any, target: Any) -> None:
            refuse_if_open(source)
            if os.path.lexists(target) and (Path(target).is_dir() or not replaces_files):
                raise FileExistsError(errno.EEXIST, "File exists", str(source), None, str(target))
            refuse_if_open(target)
            move(source, target)

        return call

    def unlink(path: Any, **named: Any) -> None:
        if not named:  # else `shutil.rmtree`, which knows its directory by a descriptor
            refuse_if_open(path)
        real["unlink"](path, **named)

    def fsync(descriptor: int) -> None:
        if Path(f"/proc/self/fdinfo/{descriptor}").read_text().split("flags:")[1].split()[0][-1] not in "12":
            raise OSError(errno.EBADF, "Bad file descriptor")
        real["fsync"](descriptor)

    patch.setattr(os, "open", open_no_directory)
    patch.setattr(os, "rename", moving(real["rename"], replaces_files=False))
    patch.setattr(os, "replace", moving(real["replace"], replaces_files=True))
    patch.setattr(os, "unlink", unlink)
    patch.setattr(os, "fsync", fsync)


def refuse_if_open(path: Any) -> None:
    """Of files that this process has open, and of directories with such files in them."""
    whole = str(Path(path).resolve())
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            held = str(descriptor.readlink())
        except OSError:
            continue
        if held == whole or held.startswith(f"{whole}/"):
            raise PermissionError(errno.EACCES, "Permission denied: it is open", str(path))
