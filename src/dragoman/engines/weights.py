"""The layout of CTranslate2's model.bin: shapes are checked against the file before it is loaded.

    u32 version, text name of the architecture, u32 its revision, u32 number of variables
    each variable: text name, u8 number of axes, u32 a size each, u8 type, u32 number of bytes, the bytes
    u32 number of aliases, each: text name, text variable                (a text: u16 length, bytes, 0)

CTranslate2 allocates memory for any sizes in the file, in native code.
"""

import os
from math import prod
from pathlib import Path
from typing import BinaryIO

from dragoman.errors import UserError
from dragoman.files import open_regular

_VERSIONS = range(4, 100)
"""Versions with this layout; CTranslate2 itself refuses those that it cannot read."""
_MOST_VARIABLES, _MOST_AXES = 100_000, 8
_WIDTHS = (4, 1, 2, 4, 2, 2)
"""Bytes per number: float32, int8, int16, int32, float16, bfloat16."""

Shapes = dict[str, tuple[int, ...]]


def read_shapes(path: Path) -> Shapes:
    """The shapes of all variables. An inconsistent file is refused."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            return _read(file, size)
        except (ValueError, EOFError):
            raise UserError(f"{path}: these are not the weights of a CTranslate2 model") from None


def _read(file: BinaryIO, size: int) -> Shapes:
    if _number(file, 4) not in _VERSIONS:
        raise ValueError("version")
    _text(file)
    _number(file, 4)
    shapes: Shapes = {}
    for _ in range(_at_most(_number(file, 4), _MOST_VARIABLES)):
        name = _text(file)
        shape = tuple(_number(file, 4) for _ in range(_at_most(_number(file, 1), _MOST_AXES)))
        width = _WIDTHS[_at_most(_number(file, 1), len(_WIDTHS) - 1)]
        if _number(file, 4) != prod(shape) * width or name in shapes:
            raise ValueError(name)
        if file.seek(prod(shape) * width, os.SEEK_CUR) > size:
            raise EOFError
        shapes[name] = shape
    for _ in range(_at_most(_number(file, 4), _MOST_VARIABLES)):
        alias, variable = _text(file), _text(file)
        if variable not in shapes or alias in shapes:
            raise ValueError(alias)
        shapes[alias] = shapes[variable]
    if file.tell() != size:
        raise ValueError("there is more behind the last one")
    return shapes


def _number(file: BinaryIO, width: int) -> int:
    return int.from_bytes(_bytes(file, width), "little")


def _text(file: BinaryIO) -> str:
    return _bytes(file, _number(file, 2)).removesuffix(b"\0").decode("utf-8")


def _bytes(file: BinaryIO, count: int) -> bytes:
    found = file.read(count)
    if len(found) < count:
        raise EOFError
    return found


def _at_most(number: int, most: int) -> int:
    if number > most:
        raise ValueError(number)
    return number
