"""Kernels for NVIDIA GPUs, written in Triton, which comes with torch there.

What each one computes is written in plain torch beside its caller, and that runs wherever these cannot: on a
CPU, without Triton, for types or sizes that they do not know. Tests hold the two to each other.
"""

import importlib.util
import os
from functools import cache

import torch

_TYPES = (torch.bfloat16, torch.float16, torch.float32)
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def usable(*tensors: torch.Tensor) -> bool:
    """Whether kernels can take these tensors: on a GPU, with nothing to be differentiated."""
    for tensor in tensors:
        if not (tensor.is_cuda or _INTERPRETED) or tensor.dtype not in _TYPES:
            return False
    return _has_triton()


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
