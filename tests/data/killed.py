"""Preparing in a process that is killed before one of its file operations."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CALLS = ("write", "fsync")
"""Of `os`, which report nothing to an audit hook."""


def killed_before(number: int, act: Callable[[], object], root: Path) -> bool:
    """Do `act` in a new process. Whether that was killed before operation `number` (from 0) on files below
    `root`: to open, make, rename, link, lock or delete one, to write to one or to force it to disk."""
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL), f"operation {number}: status {status}"
        return status != 0
    try:
        _kill_before(number, str(root))
        act()
        os._exit(0)
    finally:
        os._exit(1)


def _kill_before(number: int, root: str) -> None:
    left = number

    def count() -> None:
        nonlocal left
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(("open", "os.", "fcntl.", "shutil.rmtree")):
            names = [os.fsdecode(each) for each in arguments if isinstance(each, str | bytes | os.PathLike)]
            if event == "fcntl.flock" or any(name.startswith(root) for name in names):
                count()

    def watched(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            count()
            return real(*arguments)

        return call

    for name in _CALLS:
        setattr(os, name, watched(getattr(os, name)))
    sys.addaudithook(hook)
