"""The files of a checkpoint: manifests, the safetensors layout, and the disk space they take.

A manifest lists files with sizes and SHA-256. It contains its own hash, so that damage to it can be
distinguished from damage to a file. Safetensors files may come from untrusted sources: the header is checked
before a tensor is created.

    8 bytes   length of the header
    header    JSON: type, shape and byte range of each tensor
    rest      the bytes of the tensors, concatenated
"""

import errno
import json
import math
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from math import prod
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from dragoman.errors import UserError, shown
from dragoman.files import Written, final_name, hash_file, open_regular, read_regular
from dragoman.plain import parse_json

MANIFEST_FORMAT = 1
_LARGEST_FILE = 4 << 20
_DEEPEST = 4


class Damaged(UserError):
    """A file or checkpoint is damaged, so an older checkpoint may be used instead.

    One that cannot be read at the moment (no permission, a failing disk or server) is a plain UserError: it
    may be intact, and is not replaced.
    """


def serialise(files: Mapping[str, Written]) -> bytes:
    """The bytes of the list; equal lists give equal bytes."""
    listed = {name: {"size": entry.size, "sha256": entry.sha256} for name, entry in sorted(files.items())}
    seal = sha256(json.dumps(listed).encode()).hexdigest()
    return json.dumps({"format": MANIFEST_FORMAT, "files": listed, "seal": seal}, indent=1).encode()


def read_listing(path: Path) -> dict[str, Written]:
    """The list in a file. Raises OSError if it cannot be read."""
    damaged = Damaged(f"{path}: damaged: this is not a manifest")
    try:
        raw = read_regular(path, _LARGEST_FILE)
        data = parse_json(raw)
        files = {name: Written(entry["size"], entry["sha256"]) for name, entry in data["files"].items()}
        written_by = data["format"]
    except (UserError, KeyError, TypeError, AttributeError):
        raise damaged from None
    if type(written_by) is int and written_by > MANIFEST_FORMAT and b'"seal"' in raw:
        raise UserError(
            f"{path}: written in format {written_by}; this version of dragoman reads {MANIFEST_FORMAT}"
        )
    if raw != serialise(files) or not all(_is_sound(name, entry) for name, entry in files.items()):
        raise damaged
    return files


def _is_sound(name: str, entry: Written) -> bool:
    """Check that an entry is a path below the directory with a valid size and hash."""
    path = PurePosixPath(name)
    inside = str(path) == name and not path.is_absolute() and ".." not in path.parts and "\0" not in name
    size: Any = entry.size
    return inside and 0 < len(path.parts) <= _DEEPEST and type(size) is int and isinstance(entry.sha256, str)


def changes(directory: Path, files: Mapping[str, Written]) -> Iterator[str]:
    """One sentence for every file that does not match the list."""
    for name, listed in files.items():
        path = directory / name
        try:
            size = path.stat().st_size
            if size != listed.size and path.is_file():
                yield f"{path}: damaged: it has {size:,} bytes, its manifest says {listed.size:,}"
            elif hash_file(path) != listed.sha256:
                yield f"{path}: damaged: its SHA-256 is not the one in its manifest"
        except FileNotFoundError:
            yield f"{path}: missing"
        except OSError as error:
            yield f"{path}: cannot be read ({error.strerror or error})"
        except UserError as error:
            yield str(error)


_BLOCK = 4096
"""File systems allocate blocks; each file may leave most of its last block unused."""

_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


class Content(NamedTuple):
    """The content of a file; its exact size is known before it is written."""

    size: int
    chunks: Iterable[bytes | memoryview]


def from_bytes(data: bytes) -> Content:
    return Content(len(data), (data,))


def from_tensors(tensors: Mapping[str, Tensor], about: Mapping[str, str] | None = None) -> Content:
    """The safetensors layout: length of the header, the header as JSON, the tensors one after the other.

    Written here and not by the library, so that size and hash are known without a second pass, and no second
    copy of the weights is held in memory. `about` is metadata that other readers expect.
    """
    header: dict[str, object] = {} if about is None else {"__metadata__": dict(about)}
    offset = 0
    for name, tensor in tensors.items():
        end = offset + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the tensors begin at a multiple of 8
    return Content(8 + len(text) + offset, _tensor_chunks(text, tensors))


def _tensor_chunks(header: bytes, tensors: Mapping[str, Tensor]) -> Iterator[bytes | memoryview]:
    yield len(header).to_bytes(8, "little")
    yield header
    for tensor in tensors.values():
        if tensor.numel():
            flat = tensor.detach().cpu().contiguous().reshape(-1)
            yield flat.view(torch.uint8).numpy().data


def space_for(contents: Iterable[Content]) -> int:
    """Disk space of these files, including the manifest and the directory."""
    sizes = [content.size for content in contents]
    return sum(math.ceil(size / _BLOCK) * _BLOCK for size in sizes) + 2 * _BLOCK


def disk_full(path: Path, needed: int) -> UserError:
    free = shutil.disk_usage(path).free
    return UserError(
        f"{final_name(path)}: the disk is full: a checkpoint needs {needed:,} bytes and {free:,} are free; "
        "the earlier checkpoints are intact: make room and resume the run"
    )


def is_disk_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


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
