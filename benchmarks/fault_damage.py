"""Ways to damage a file."""

import json
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_PAGE = 4096

Chance = random.Random


def _flip_bit(data: bytearray, chance: Chance) -> None:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _change_byte(data: bytearray, chance: Chance) -> None:
    place = chance.randrange(len(data))
    data[place] = (data[place] + chance.randrange(1, 256)) % 256


def _zero_page(data: bytearray, chance: Chance) -> None:
    start = chance.randrange(0, len(data), _PAGE)
    data[start : start + _PAGE] = bytes(len(data[start : start + _PAGE]))


def _cut(data: bytearray, chance: Chance) -> None:
    del data[chance.randrange(len(data)) :]


def _append(data: bytearray, chance: Chance) -> None:
    data += chance.choice((b"\0", b"\n", b" ", data[:64], chance.randbytes(chance.randrange(1, 5000))))


def _swap_blocks(data: bytearray, chance: Chance) -> None:
    blocks = len(data) // 64
    if blocks < 2:
        return _flip_bit(data, chance)
    a, b = (64 * number for number in chance.sample(range(blocks), 2))
    data[a : a + 64], data[b : b + 64] = data[b : b + 64], data[a : a + 64]
    return None


def _edit_json(data: bytearray, chance: Chance) -> None:
    """Another value in one place; a file that is no JSON loses a byte instead."""
    try:
        content = json.loads(bytes(data))
    except ValueError:
        del data[chance.randrange(len(data))]
        return
    places: list[tuple[Any, Any]] = []
    waiting = [content]
    while waiting:
        node = waiting.pop()
        inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, value in inner:
            places.append((node, key))
            waiting.append(value)
    if places:
        node, key = chance.choice(places)
        if isinstance(node, dict) and chance.random() < 0.2:
            del node[key]
        else:
            node[key] = _other(node[key], chance)
    data[:] = json.dumps(content, indent=chance.choice((None, 1, 2)), ensure_ascii=False).encode()


def _other(value: Any, chance: Chance) -> Any:
    others: tuple[Any, ...] = (None, [], {}, "", "x", -1, 0, 1e308, 10**12, True, [value], str(value))
    if isinstance(value, bool):
        others = (not value, *others)
    elif isinstance(value, int | float):
        others = (value + 1, value - 1, value * 2, *others)
    elif isinstance(value, str) and value:
        place = chance.randrange(len(value))
        others = (value[:place] + chr(ord(value[place]) ^ 1) + value[place + 1 :], value[::-1], *others)
    return chance.choice(others)


IN_BYTES: tuple[Callable[[bytearray, Chance], None], ...] = (
    *(_flip_bit, _flip_bit, _flip_bit, _change_byte, _zero_page, _cut, _append, _swap_blocks),
    *(_edit_json, _edit_json),
)
IN_PLACE = (
    "swapped with another",
    "deleted",
    "emptied",
    "pipe",
    "directory",
    "dangling link",
    "another in its place",
)


def damage(directory: Path, files: Sequence[Path], chance: Chance) -> str:
    """Do one damage below `directory`; what was done."""
    path = chance.choice(files)
    name = str(path.relative_to(directory))
    size = path.stat().st_size
    if size and chance.random() < 0.85:
        how = chance.choice(IN_BYTES)
        data = bytearray(path.read_bytes())
        how(data, chance)
        path.write_bytes(data)
        return f"{name}: {how.__name__.strip('_')}"
    what = chance.choice(IN_PLACE)
    other = chance.choice([each for each in files if each != path] or files)
    if what == "swapped with another":
        here, there = path.read_bytes(), other.read_bytes()
        path.write_bytes(there)
        other.write_bytes(here)
        return f"{name}: swapped with {other.relative_to(directory)}"
    content = other.read_bytes()
    path.unlink()
    if what == "emptied":
        path.touch()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "directory":
        path.mkdir()
    elif what == "dangling link":
        path.symlink_to("nowhere")
    elif what == "another in its place":
        path.write_bytes(content)
    return f"{name}: {what}"
