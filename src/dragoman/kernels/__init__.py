"""Kernels: faster ways to compute what plain torch computes. A file a kernel, or a family that shares code.

    half_linear       linear layers trained in half precision, weights in float32          Triton
    fused_norm        LayerNorm of a residual sum, with dropout and gradients               Triton
    packed_attention  attention inside short sequences of a packed batch                    Triton
    rotary            rotary positions of projected queries and keys                        Triton
    loss              cross-entropy and R-Drop from logits, with their gradients            Triton
    slots             embedding and attention of a recorded search step                     Triton
    beam_search       the best pieces of a step, and what a beam search decides             Triton
    onednn            products of few rows with weights in oneDNN's layout                  CPU
    int8              products in whole numbers                                             CPU

Triton comes with torch on Linux and needs an NVIDIA GPU, or its interpreter (`TRITON_INTERPRET=1`). Every
kernel has an equal in plain torch, which runs wherever the kernel cannot; tests compare the two.
`nn/kernel_choice.py` chooses, and says why.
"""

import importlib.util
import os
from functools import cache

import torch

LONGEST_SEQUENCE = 256
"""The longest sequence that `packed_attention` takes."""
WIDEST_HEAD = 128
"""The widest attention head that `packed_attention` takes."""
_NEEDS_GPU = "it needs an NVIDIA GPU"
_TYPES = (torch.bfloat16, torch.float16, torch.float32)
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def triton_refusal(*tensors: torch.Tensor) -> str | None:
    """Why Triton kernels cannot take these tensors, or None if they can."""
    for tensor in tensors:
        if not (tensor.is_cuda or _INTERPRETED):
            return _NEEDS_GPU
        if tensor.dtype not in _TYPES:
            return "it does not know numbers of this type"
    return None if _has_triton() else "Triton is not installed"


def usable(*tensors: torch.Tensor) -> bool:
    """Whether Triton kernels can take these tensors."""
    return triton_refusal(*tensors) is None


def tile_size(longest: int) -> int:
    """Positions in a tile of `packed_attention`: a power of 2, and at least 16 for matrix products."""
    return max(16, 1 << (longest - 1).bit_length())


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
