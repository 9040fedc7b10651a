"""What operating systems do not have in common, in one place.

dragoman is developed and tested on Linux. Windows has no `fcntl`, `fork`, `pread` or `poll`, opens files as
text unless told otherwise, opens no directories, and renames no open files. Tests take these things away on
Linux (`tests/elsewhere.py`).
"""

import getpass
import os
import select
import signal
import threading
from typing import Any

WINDOWS = os.name == "nt"

BINARY: int = getattr(os, "O_BINARY", 0)
"""File flag without which Windows would write each line feed as two characters."""
WITHOUT_WAITING: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""File flags with which opening a named pipe or a terminal returns at once."""
WITHOUT_LINKS: int = getattr(os, "O_NOFOLLOW", 0)

_seeking = threading.Lock()


_most_cores: int | None = None


def usable_cores() -> int:
    """Cores that this process may run on; on some systems all that there are."""
    affinity = getattr(os, "sched_getaffinity", None)
    found = len(affinity(0)) if affinity is not None else (os.cpu_count() or 1)
    return found if _most_cores is None else min(found, _most_cores)


def use_at_most(cores: int) -> None:
    """For a process that shares its machine with others like it."""
    global _most_cores
    _most_cores = cores


def user() -> str:
    """The user's number or, on Windows, name."""
    number = getattr(os, "getuid", None)
    return str(number()) if number is not None else getpass.getuser()


def change_permissions(descriptor: int, mode: int) -> None:
    """Change the permissions of an open file, if the system has permissions."""
    change = getattr(os, "fchmod", None)
    if change is not None:
        change(descriptor, mode)


def read_at(descriptor: int, length: int, begin: int) -> bytes:
    """Bytes from a place in a file, from any thread. The system may read fewer than are there."""
    read = getattr(os, "pread", None)
    if read is not None:
        return read(descriptor, length, begin)
    with _seeking:
        os.lseek(descriptor, begin, os.SEEK_SET)
        return os.read(descriptor, length)


def has_input(number: int) -> bool:
    """Whether something can be read from a socket, be it its end. `poll` needs no file descriptor of its own,
    of which there may be none."""
    poll: Any = getattr(select, "poll", None)
    if poll is None:
        return bool(select.select([number], [], [], 0)[0])
    watch = poll()
    watch.register(number, getattr(select, "POLLIN", 1))
    return bool(watch.poll(0))


def stop_signals() -> tuple[signal.Signals, ...]:
    """The signals that ask a process to stop. On Windows one process sends another Ctrl-Break."""
    names = ("SIGINT", "SIGTERM", "SIGBREAK")
    return tuple(signal.Signals[name] for name in names if name in signal.Signals.__members__)


def interruption() -> signal.Signals:
    """The signal sent to a child process instead of Ctrl-C. The child must be in its own process group."""
    return getattr(signal, "CTRL_BREAK_EVENT", signal.SIGINT)
