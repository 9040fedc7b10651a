"""Commands in processes of their own that begin where this one is: torch need not be loaded again."""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.main import main

CHANGES = ("open", "write", "fsync", "rename", "replace", "link", "mkdir", "unlink", "rmdir")
"""Calls of `os` that change files, or are about to."""
_LONGEST = 120
"""Seconds after which a child that waits for something is ended: a test must not wait for ever."""


@dataclass(frozen=True)
class Ended:
    status: int
    """As `subprocess` has it: negative is the number of a signal."""
    text: str
    """What it wrote to standard output and standard error."""


def begin(act: Callable[[], object], output: Path) -> int:
    """The number of a new process that does `act` and ends; `end` waits for it."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_LONGEST)
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", buffering=1), os.fdopen(2, "w", buffering=1)
        act()
        status = 0
    except SystemExit as error:
        status = int(error.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def end(child: int, output: Path) -> Ended:
    _, status = os.waitpid(child, 0)
    return Ended(os.waitstatus_to_exitcode(status), output.read_text("utf-8"))


def run(act: Callable[[], object], output: Path) -> Ended:
    return end(begin(act, output), output)


def command(*arguments: object) -> Callable[[], None]:
    """What `dragoman …` does, with its exit status and its messages."""

    def act() -> None:
        sys.argv = ["dragoman", *map(str, arguments)]
        main()

    return act


class Calls:
    """Counts the calls of `os` that change files below a directory."""

    def __init__(self, root: Path, reached: Callable[[int], None] = lambda _count: None) -> None:
        self.count, self._root, self._reached = 0, str(root), reached

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        for name in CHANGES:
            patch.setattr(os, name, self._watched(getattr(os, name)))

    def _watched(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            if isinstance(args[0], int) or str(args[0]).startswith(self._root):
                self.count += 1
                self._reached(self.count)
            return real(*args, **named)

        return call


def killed_at(number: int, act: Callable[[], object], root: Path) -> Callable[[], None]:
    """The same, killed before one of those calls (from 1)."""

    def die(count: int) -> None:
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def act_until_killed() -> None:
        Calls(root, die).watch(pytest.MonkeyPatch())
        act()

    return act_until_killed


def count_calls(act: Callable[[], object], root: Path) -> int:
    """How many such calls it makes. It is done here, so that what it loads is there for the children."""
    calls = Calls(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", sys.argv)
        calls.watch(patch)
        try:
            act()
        except SystemExit as error:
            assert not error.code, error.code
    return calls.count
