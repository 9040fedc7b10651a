"""Damage to files, and things that are no files: for the tests of what is read from directories."""

import json
import os
import random
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

HOSTILE: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 10**9, 10**12, 10**400, 1.5, 1e308, float("nan"), "", "x", "1" * 1000,
    [], [1], [[[[]]]], {}, {"type": "Sequence"},
)  # fmt: skip
"""What may stand in place of any value of a JSON file."""


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The bytes with one kind of damage."""
    if not data:
        return b"\0"
    place = chance.randrange(len(data))
    kind = chance.randrange(7)
    if kind == 0:
        return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]
    if kind == 1:
        return data[:place] + bytes([(data[place] + chance.randrange(1, 256)) % 256]) + data[place + 1 :]
    if kind == 2:
        return data[:place]
    if kind == 3:
        return data + chance.randbytes(chance.randint(1, 50))
    if kind == 4:
        size = chance.randint(1, 64)
        found = data[:place] + bytes(len(data[place : place + size])) + data[place + size :]
        return found if found != data else data + b"\0"
    if kind == 5:
        return data[:place] + data[place + 1 :]
    return data[:place] + data[place : place + 8] + data[place:]


def nodes(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values inside of plain data."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from nodes(value, (*path, key))


def changed(data: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    """A copy in which `change` was called with what the value lies in and its key."""
    copy = json.loads(json.dumps(data))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    change(inner, path[-1])
    return copy


def replaced(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    return changed(data, path, lambda inner, key: inner.__setitem__(key, value))


def removed(data: Any, path: tuple[Any, ...]) -> Any:
    return changed(data, path, lambda inner, key: inner.__delitem__(key))


def doubled(data: Any, path: tuple[Any, ...]) -> Any:
    """A list has the entry twice; a mapping has it again under another name."""

    def change(inner: Any, key: Any) -> None:
        if isinstance(inner, list):
            inner.insert(key, inner[key])
        else:
            inner[f"{key}s"] = inner[key]

    return changed(data, path, change)


def not_files(path: Path) -> Iterator[str]:
    """Each of the things that can stand in place of a file, one after the other."""
    kept = path.with_name(f"{path.name}.kept")
    if path.exists():
        path.rename(kept)

    def bind() -> None:
        with socket.socket(socket.AF_UNIX) as server:
            here = os.open(path.parent, os.O_RDONLY)  # its name may be too long for a socket
            server.bind(f"/proc/self/fd/{here}/{path.name}")
            os.close(here)

    makers: dict[str, Callable[[], object]] = {
        "a named pipe": lambda: os.mkfifo(path),
        "a directory": path.mkdir,
        "a socket": bind,
        "a device": lambda: path.symlink_to("/dev/zero"),
        "nothing": lambda: path.symlink_to(path.with_name("not there")),
    }
    for name, make in makers.items():
        make()
        yield name
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    if kept.exists():
        kept.rename(path)


@contextmanager
def never_waiting(seconds: int = 120) -> Iterator[None]:
    """What waits for ever is broken off, so that the test fails and does not hang."""

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
