"""Which kernel computes an attention, a linear layer, a feed-forward network or a norm.

Every operation has a list of kernels with one signature, the fastest first. A kernel refuses a call with a
reason, or takes it. `choose` gives the first that takes it; `explain` also gives the reasons of those before
it, which `dragoman doctor` prints. The last kernel of a list is plain torch and takes everything.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar, TypeVarTuple

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.kernels import LONGEST_SEQUENCE, WIDEST_HEAD, onednn, triton_refusal
from dragoman.nn.attention_kernels import (
    AttentionCall,
    Projected,
    attend_explicitly,
    attend_flash,
    attend_fused,
    attend_one_query,
    attend_packed,
    taps_on,
)
from dragoman.nn.dropout import dropout
from dragoman.shapes import Float, Tensor

if TYPE_CHECKING:
    from dragoman.nn.layer import FeedForward
    from dragoman.nn.linear import Multiplies

_WIDEST_FLASH_HEAD = 256
_WIDEST_NORM = 8192
_NOT_PACKED = "it is for packed batches, as on a GPU"
_BIASED = "relative positions add to the scores"
_WATCHED = "a tap looks at the weights"
_RECORDED = "gradients are recorded"

KernelArgs = TypeVarTuple("KernelArgs")
KernelResult = TypeVar("KernelResult")


@dataclass(frozen=True)
class Kernel(Generic[*KernelArgs, KernelResult]):
    name: str
    refusal: Callable[[*KernelArgs], str | None]
    """Why it does not take a call, or None if it does."""
    run: Callable[[*KernelArgs], KernelResult]
    for_speed: bool = True
    """It is there because it is faster than those after it, not because it can do more."""


def choose_kernel(
    kernels: Sequence[Kernel[*KernelArgs, KernelResult]], *call: *KernelArgs
) -> Kernel[*KernelArgs, KernelResult]:
    """The first kernel that takes this call."""
    for kernel in kernels:
        if kernel.refusal(*call) is None:
            return kernel
    raise AssertionError("the last kernel of a list takes everything")


def explain_choice(
    kernels: Sequence[Kernel[*KernelArgs, KernelResult]], *call: *KernelArgs
) -> list[tuple[str, str | None]]:
    """The faster kernels, each with its reason to refuse, and at the end the chosen one, with None."""
    found: list[tuple[str, str | None]] = []
    for kernel in kernels:
        reason = kernel.refusal(*call)
        if reason is None:
            return [*found, (kernel.name, None)]
        if kernel.for_speed:
            found.append((kernel.name, reason))
    raise AssertionError("the last kernel of a list takes everything")


def _takes_everything(*_: object) -> None:
    return None


# Attention: `AttentionCall` -> heads


def _packed_refusal(call: AttentionCall) -> str | None:
    if call.mask.packing is None:
        return _NOT_PACKED
    if not isinstance(call.inputs, Projected):
        return _BIASED
    if reason := triton_refusal(call.inputs.query):
        return reason
    if call.dropout:
        return "attention has dropout"
    if taps_on(call.owner):
        return _WATCHED
    if max(packing.longest for packing in call.mask.packing) > LONGEST_SEQUENCE:
        return f"sequences are longer than {LONGEST_SEQUENCE}"
    if max(call.inputs.head_widths) > WIDEST_HEAD:
        return f"heads are wider than {WIDEST_HEAD}"
    return None


def _flash_refusal(call: AttentionCall) -> str | None:
    if call.mask.packing is None:
        return _NOT_PACKED
    if call.bias is not None:
        return _BIASED
    query = call.inputs.query
    if not query.is_cuda or query.dtype not in (torch.bfloat16, torch.float16):
        return "it needs an NVIDIA GPU and half precision"
    if taps_on(call.owner):
        return _WATCHED
    if all(packing.even for packing in call.mask.packing):
        return "all sequences have one length, and need no copy as rows"
    width, value_width = call.inputs.head_widths
    if width != value_width or width % 8 or width > _WIDEST_FLASH_HEAD:
        return "it does not know heads of this width"
    return None


def _padded_refusal(call: AttentionCall) -> str | None:
    return _NOT_PACKED if call.mask.packing is None else None


def _attend_padded(call: AttentionCall) -> Float[Tensor, "1 H N W"]:
    """Every sequence of a packed batch in a row of its own, and back."""
    assert call.mask.packing is not None, "only packed batches are padded"
    rows, mask = call.inputs.split().in_rows(call.mask)
    padded = replace(call, inputs=rows, mask=mask)
    return call.mask.packing[0].packed(choose_kernel(ATTENTION, padded).run(padded))


def _explicit_refusal(call: AttentionCall) -> str | None:
    return None if taps_on(call.owner) else "no tap looks at the weights"


def _one_query_refusal(call: AttentionCall) -> str | None:
    query = call.inputs.query
    if query.device.type != "cpu":
        return "it is for the CPU"
    if torch.is_grad_enabled():
        return _RECORDED
    if query.size(-2) != 1:
        return "there is more than one query"
    if call.bias is not None or call.mask.causal or call.mask.visible is not None:
        return "something is masked"
    return None


ATTENTION = (
    Kernel("packed", _packed_refusal, attend_packed),
    Kernel("flash", _flash_refusal, attend_flash),
    Kernel("padded", _padded_refusal, _attend_padded, for_speed=False),
    Kernel("explicit", _explicit_refusal, attend_explicitly, for_speed=False),
    Kernel("one query", _one_query_refusal, attend_one_query),
    Kernel("torch", _takes_everything, attend_fused),
)


# Linear layers: input, weight, bias and the module of the weight -> output

_Owner: TypeAlias = "Multiplies | None"


def _int8_refusal(x: Tensor, _weight: Tensor, _bias: Tensor | None, owner: _Owner) -> str | None:
    if owner is None or not owner.is_quantized:
        return "the model is not quantized (--precision int8)"
    if torch.is_grad_enabled():
        return _RECORDED
    return None if x.device.type == "cpu" and x.dtype == torch.float32 else "it is for float32 on a CPU"


def _run_int8(x: Tensor, _weight: Tensor, bias: Tensor | None, owner: _Owner) -> Tensor:
    assert owner is not None, "only modules are quantized"
    return owner.int8_weight()(x, bias)


def half_refusal(x: Tensor, weight: Tensor, _bias: Tensor | None = None, _owner: _Owner = None) -> str | None:
    """For half-precision inputs and float32 weights, under autocast; inputs of another type than autocast's
    are left to it."""
    if reason := triton_refusal(x):
        return reason
    if not (torch.is_grad_enabled() and weight.requires_grad):
        return "the weight is not trained"
    if x.dtype == torch.float32 or weight.dtype != torch.float32:
        return "it needs half-precision inputs and float32 weights"
    device = x.device.type
    if torch.is_autocast_enabled(device) and x.dtype != torch.get_autocast_dtype(device):
        return "autocast would convert the input"
    return None


def _run_half(x: Tensor, weight: Tensor, bias: Tensor | None, _owner: _Owner) -> Tensor:
    from dragoman.kernels.half_linear import half_linear

    return half_linear(x, weight, bias)


def _onednn_refusal(x: Tensor, weight: Tensor, _bias: Tensor | None, _owner: _Owner) -> str | None:
    return onednn.parameter_refusal(x, weight)


def _run_onednn(x: Tensor, weight: Tensor, bias: Tensor | None, _owner: _Owner) -> Tensor:
    return onednn.product(x, onednn.kept_layout(weight), bias)


def _run_linear(x: Tensor, weight: Tensor, bias: Tensor | None, _owner: _Owner) -> Tensor:
    return F.linear(x, weight, bias)


LINEAR = (
    Kernel("int8", _int8_refusal, _run_int8),
    Kernel("half", half_refusal, _run_half),
    Kernel("onednn", _onednn_refusal, _run_onednn),
    Kernel("torch", _takes_everything, _run_linear),
)


# Feed-forward networks: module and input -> output


def _feedforward_refusal(network: "FeedForward", x: Tensor) -> str | None:
    if reason := triton_refusal(x):
        return reason
    if network.fusable is None:
        return "it needs biases, no gate, and relu or gelu"
    if reason := half_refusal(x, network.widen.weight):
        return reason
    return "it has dropout inside" if network.dropout and network.training else None


def _run_feedforward(network: "FeedForward", x: Tensor) -> Tensor:
    from dragoman.kernels.half_linear import half_feedforward

    widen, narrow = network.widen, network.narrow
    assert network.fusable is not None, "refused otherwise"
    return half_feedforward(x, widen.weight, widen.bias, narrow.weight, narrow.bias, network.fusable)


def _run_two_layers(network: "FeedForward", x: Tensor) -> Tensor:
    return network.two_layers(x)


FEEDFORWARD = (
    Kernel("half", _feedforward_refusal, _run_feedforward),
    Kernel("torch", _takes_everything, _run_two_layers),
)


# Norms: residual, output of the sublayer, norm and dropout rate -> output


def _norm_refusal(x: Tensor, sublayer: Tensor, norm: nn.Module) -> str | None:
    if reason := triton_refusal(x, sublayer):
        return reason
    if not isinstance(norm, nn.LayerNorm):
        return "it knows LayerNorm alone"
    if x.size(-1) > _WIDEST_NORM:
        return f"it is for at most {_WIDEST_NORM} numbers a position"
    if hasattr(norm.weight, "full_tensor"):
        return "the norm is sharded (FSDP)"
    return triton_refusal(norm.weight)


def _post_norm_refusal(x: Tensor, sublayer: Tensor, norm: nn.Module, rate: float) -> str | None:
    if reason := _norm_refusal(x, sublayer, norm):
        return reason
    if rate and not torch.is_grad_enabled():
        return "there is dropout without gradients"
    return None if x.dtype == sublayer.dtype else "residual and sublayer have different types"


def _run_post_norm(x: Tensor, sublayer: Tensor, norm: nn.Module, rate: float) -> Tensor:
    from dragoman.kernels.fused_norm import add_norm, drop_add_norm

    assert isinstance(norm, nn.LayerNorm), "refused otherwise"
    if torch.is_grad_enabled():
        return drop_add_norm(x, sublayer, norm.weight, norm.bias, norm.eps, rate)
    return add_norm(x, sublayer, norm.weight, norm.bias, norm.eps)


def _run_norm(x: Tensor, sublayer: Tensor, norm: nn.Module, rate: float) -> Tensor:
    return norm(x + dropout(sublayer, rate))


POST_NORM = (
    Kernel("fused", _post_norm_refusal, _run_post_norm),
    Kernel("torch", _takes_everything, _run_norm),
)


def pre_norm_refusal(x: Tensor, norm: nn.Module) -> str | None:
    """Pre-norm stacks on a GPU add a sublayer and apply the norm of the next one in one pass; elsewhere each
    layer applies its own norms."""
    return _norm_refusal(x, x, norm) if torch.is_grad_enabled() else "it is for training"
