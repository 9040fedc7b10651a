"""Kernels for NVIDIA GPUs, written in Triton, which comes with torch there.

What each one computes is written in plain torch beside its caller, and that runs wherever these cannot: on a
CPU, without Triton, for types or sizes that they do not know. Tests hold the two to each other.
"""

import importlib.util
import os
from functools import cache

import torch

LONGEST_SEQUENCE = 256
"""Positions that attention inside packed sequences can look at together."""
_TYPES = (torch.bfloat16, torch.float16, torch.float32)
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def usable(*tensors: torch.Tensor) -> bool:
    """Whether kernels can take these tensors: on a GPU, in a type that they know."""
    for tensor in tensors:
        if not (tensor.is_cuda or _INTERPRETED) or tensor.dtype not in _TYPES:
            return False
    return _has_triton()


def tile_size(longest: int) -> int:
    """Positions that a program of such an attention has room for: matrix products have 16 rows at least."""
    return max(16, 1 << (longest - 1).bit_length())


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
