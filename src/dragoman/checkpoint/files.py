"""The safetensors layout as a stream of bytes, and the disk space of a checkpoint."""

import errno
import json
import math
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.errors import UserError
from dragoman.files import final_name

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
