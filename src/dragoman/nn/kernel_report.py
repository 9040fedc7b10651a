"""Which kernels would compute a Transformer on a device, and why not faster ones: for `dragoman doctor`."""

from dataclasses import dataclass

import torch
from torch import nn

from dragoman.kernels import triton_refusal
from dragoman.nn.attention import SelfAttention
from dragoman.nn.attention_kernels import AttentionCall, Heads, Projected
from dragoman.nn.kernel_choice import ATTENTION, FEEDFORWARD, LINEAR, POST_NORM, explain_choice
from dragoman.nn.layer import FeedForward
from dragoman.nn.mask import Packing, packed, padding
from dragoman.shapes import Tensor

_DIM, _HEADS, _ROWS, _LENGTH = 512, 8, 32, 16  # a Transformer-base on a small batch


@dataclass(frozen=True)
class KernelChoice:
    use: str
    """train or translate."""
    operation: str
    kernel: str
    refused: dict[str, str]
    """Faster kernels, each with why it does not run."""


def kernel_choices(device: torch.device) -> list[KernelChoice]:
    """The kernels that training (bfloat16 on a GPU, float32 on a CPU) and search (float32) would choose."""
    attention = SelfAttention(_DIM, _HEADS, _DIM // _HEADS, _DIM // _HEADS).to(device)
    network, norm = FeedForward(_DIM, 4 * _DIM).to(device), nn.LayerNorm(_DIM, device=device)
    on_gpu = device.type == "cuda"
    x = torch.zeros(1, _ROWS * _LENGTH, _DIM, device=device, dtype=torch.bfloat16 if on_gpu else None)
    with torch.enable_grad():
        found = _choices("train", _training_call(attention, x, on_gpu), attention, network, norm, x, 0.1)
    x = torch.zeros(_ROWS, 1, _DIM, device=device)
    head = x.view(_ROWS, 1, _HEADS, -1).transpose(1, 2)
    call = AttentionCall(attention, Heads(head, head, head))
    for module in (attention, network):
        module.requires_grad_(False)
    with torch.inference_mode():
        found += _choices("translate", call, attention, network, norm, x, 0.0)
    return found


def _training_call(attention: SelfAttention, x: Tensor, on_gpu: bool) -> AttentionCall:
    """On a GPU batches are packed, elsewhere padded."""
    if not on_gpu:
        rows = x.view(_ROWS, _LENGTH, _DIM).repeat(1, 1, 3)
        visible = torch.ones(_ROWS, _LENGTH, dtype=torch.bool)
        visible[0, -1] = False
        return AttentionCall(attention, Projected(rows, None, attention.sizes), padding(visible))
    packing = Packing.of(torch.full((_ROWS,), _LENGTH)).moved(lambda tensor: tensor.to(x.device))
    return AttentionCall(
        attention, Projected(x.repeat(1, 1, 3), None, attention.sizes), packed(packing, packing)
    )


def _choices(
    use: str,
    call: AttentionCall,
    attention: SelfAttention,
    network: FeedForward,
    norm: nn.LayerNorm,
    x: Tensor,
    dropout: float,
) -> list[KernelChoice]:
    layer = attention.out
    reasons = {
        "attention": explain_choice(ATTENTION, call),
        "linear": explain_choice(LINEAR, x, layer.weight, layer.bias, layer),
        "feed-forward": explain_choice(FEEDFORWARD, network, x),
        "norm": explain_choice(POST_NORM, x, x, norm, dropout),
        "loss" if use == "train" else "beam search": _fused_or_torch(triton_refusal(x)),
    }
    return [_choice(use, operation, verdicts) for operation, verdicts in reasons.items()]


def _fused_or_torch(reason: str | None) -> list[tuple[str, str | None]]:
    return [("fused", None)] if reason is None else [("fused", reason), ("torch", None)]


def _choice(use: str, operation: str, verdicts: list[tuple[str, str | None]]) -> KernelChoice:
    refused = {name: reason for name, reason in verdicts if reason is not None}
    return KernelChoice(use, operation, verdicts[-1][0], refused)
