"""Safetensors files from untrusted sources: the header is checked before a tensor is created.

8 bytes   length of the header
header    JSON: type, shape and byte range of each tensor
rest      the bytes of the tensors, concatenated
"""

import os
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from dragoman.errors import UserError, shown
from dragoman.files import open_regular
from dragoman.plain import parse_json

LARGEST_HEADER = 16 << 20
MOST_TENSORS = 100_000
_MOST_AXES = 8
_LARGEST_AXIS = 1 << 40
_ABOUT = "__metadata__"
_WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


def load_tensors(path: Path, device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """All tensors of a file by name. Raises OSError if it cannot be read."""
    check_header(path)
    try:
        return load_file(path, device=str(device))
    except SafetensorError as error:
        raise UserError(f"{path}: not a safetensors file ({shown(str(error), 200)})") from None


def check_header(path: Path) -> None:
    """Refuse a file whose header does not match its content."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise UserError(f"{path}: not a safetensors file (it ends within its header)")
        if length > LARGEST_HEADER:
            raise UserError(f"{path}: its header has {length:,} bytes, and {LARGEST_HEADER:,} are allowed")
        raw = file.read(length)
    try:
        header = parse_json(raw, values=20 * MOST_TENSORS)
        if not isinstance(header, dict):
            raise UserError("its header names no tensors")
        about = header.pop(_ABOUT, {})
        if not isinstance(about, dict) or not all(isinstance(word, str) for word in about.values()):
            raise UserError(f"{_ABOUT} is {shown(about)}")
        _check_entries(header, size - 8 - length)
    except UserError as error:
        raise UserError(f"{path}: not a safetensors file ({error})") from None


def _check_entries(header: dict[str, Any], size: int) -> None:
    """The tensors must fill the rest of the file, without gaps and overlaps."""
    if len(header) > MOST_TENSORS:
        raise UserError(f"its header names more than {MOST_TENSORS:,} tensors")
    spans = sorted((_span(name, entry), name) for name, entry in header.items())
    end = 0
    for (first, last), name in spans:
        if first != end:
            raise UserError(f"{shown(name)} does not begin where the tensor before it ends")
        end = last
    if end != size:
        raise UserError(f"its header tells of {end:,} bytes, and there are {size:,}")


def _span(name: str, entry: Any) -> tuple[int, int]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise UserError(f"{shown(name)} is not described by dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _WIDTHS:
        raise UserError(f"{shown(name)} is of the type {shown(dtype)}; known are {', '.join(_WIDTHS)}")
    if not _are_counts(shape) or len(shape) > _MOST_AXES or not _are_counts(offsets) or len(offsets) != 2:
        raise UserError(f"{shown(name)} has a shape or a place that cannot be")
    if offsets[1] - offsets[0] != prod(shape) * _WIDTHS[dtype]:
        raise UserError(f"{shown(name)} has not as many bytes as its shape {shown(shape)} takes")
    return offsets[0], offsets[1]


def _are_counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < _LARGEST_AXIS for v in values)
