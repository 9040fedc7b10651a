"""Linear layers trained in half precision, with weights in float32.

    y = x Wᵀ + b                   dx = dy W      dW = dyᵀ x     db = Σ dy
    y = f(x W₁ᵀ + b₁) W₂ᵀ + b₂     f: relu, or gelu, exact or by tanh

The gradient of a weight is accumulated in float32 and never rounded. That of a bias takes one pass over dy,
which is the same pass as the gradient of f.
"""

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from dragoman.kernels.sums import add_parts
from dragoman.shapes import Float, Tensor

_COLUMNS, _ROWS, _WARPS = 64, 32, 4  # of a tile
_PARTS = 128  # partial sums of a column
_GELU = {"gelu": "none", "gelu_tanh": "tanh"}  # as torch calls them
ACTIVATIONS = ("relu", *_GELU)
"""The activations of `half_feedforward`."""


@triton.jit
def _slope(z, activation: tl.constexpr):
    """f'(z). For gelu Φ(z) + z φ(z), or the derivative of its approximation z (1 + tanh u) / 2 with
    u = √(2/π) (z + 0.044715 z³)."""
    if activation == "relu":
        slope = tl.where(z > 0, 1.0, 0.0)
    elif activation == "gelu":
        density = tl.exp(-0.5 * z * z) * 0.3989422804014327
        slope = 0.5 * (1 + tl.erf(z * 0.7071067811865476)) + z * density
    else:
        u = 0.7978845608028654 * (z + 0.044715 * z * z * z)
        high = tl.sigmoid(2 * u)  # (1 + tanh u) / 2
        inner = 0.7978845608028654 * (1 + 3 * 0.044715 * z * z)
        slope = high + 2 * z * high * (1 - high) * inner
    return slope


@triton.jit(do_not_specialize=["rows", "turns"])
def _sum_columns(
    parts, grad, before, rows, turns, width: tl.constexpr, tile: tl.constexpr, columns: tl.constexpr,
    activation: tl.constexpr,
):  # fmt: skip
    """Sums over `turns` tiles of rows. With an activation, `grad` is first multiplied by its derivative at
    `before` (its input; for relu its output) in place."""
    column = tl.program_id(0) * columns + tl.arange(0, columns)
    total = tl.zeros((tile, columns), dtype=tl.float32)
    for turn in range(turns):
        row = (tl.program_id(1) * turns + turn) * tile + tl.arange(0, tile)
        inside = (row < rows)[:, None] & (column < width)[None, :]
        at = row.to(tl.int64)[:, None] * width + column[None, :]
        value = tl.load(grad + at, mask=inside, other=0.0).to(tl.float32)
        if activation != "none":
            value *= _slope(tl.load(before + at, mask=inside, other=0.0).to(tl.float32), activation)
            rounded = value.to(grad.dtype.element_ty)
            tl.store(grad + at, rounded, mask=inside)
            value = rounded.to(tl.float32)  # sum what is stored
        total += value
    tl.store(parts + tl.program_id(1) * width + column, tl.sum(total, axis=0), mask=column < width)


def _column_sums(grad: Tensor, before: Tensor | None = None, activation: str = "none") -> Tensor:
    """Σ over the rows in float32. With an activation, `grad` is first multiplied by its derivative in place;
    `before` is the input of the activation, for relu its output."""
    rows, width = grad.shape
    turns = triton.cdiv(triton.cdiv(rows, _ROWS), _PARTS)
    count = triton.cdiv(rows, _ROWS * turns)
    parts = torch.empty(count, width, dtype=torch.float32, device=grad.device)
    _sum_columns[(triton.cdiv(width, _COLUMNS), count)](
        parts, grad, grad if before is None else before, rows, turns, width=width, tile=_ROWS,
        columns=_COLUMNS, activation=activation, num_warps=_WARPS,
    )  # fmt: skip
    return add_parts(parts[None])[0]


def _weight_gradient(grad: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    if grad.is_cuda and grad.dtype != weight.dtype:
        return torch.mm(grad.t(), x, out_dtype=weight.dtype)
    return (grad.t() @ x).to(weight.dtype)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        flat, half = x.flatten(0, -2), weight.to(x.dtype)
        out = flat @ half.t() if bias is None else torch.addmm(bias.to(x.dtype), flat, half.t())
        ctx.save_for_backward(flat, half, weight)
        ctx.biased = bias is not None
        return out.view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(  # type: ignore[override]  # the decorator hides the names of the parameters
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        x, half, weight = ctx.saved_tensors
        whole = grad_outputs[0]
        grad = whole.flatten(0, -2).contiguous()
        grad_bias = _column_sums(grad).to(weight.dtype) if ctx.biased else None
        grad_x = (grad @ half).view(*whole.shape[:-1], -1)
        return grad_x, _weight_gradient(grad, x, weight), grad_bias


class _FeedForward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        widen: Tensor,
        wide_bias: Tensor,
        narrow: Tensor,
        bias: Tensor,
        activation: str,
    ) -> Tensor:
        flat, first, second = x.flatten(0, -2), widen.to(x.dtype), narrow.to(x.dtype)
        if activation == "relu":
            before = inner = torch._addmm_activation(wide_bias.to(x.dtype), flat, first.t())
        else:
            before = torch.addmm(wide_bias.to(x.dtype), flat, first.t())
            inner = F.gelu(before, approximate=_GELU[activation])
        out = torch.addmm(bias.to(x.dtype), inner, second.t())
        ctx.save_for_backward(flat, first, second, before, inner, widen)
        ctx.activation = activation
        return out.view(x.shape)

    @staticmethod
    @once_differentiable
    def backward(  # type: ignore[override]  # as above
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        x, first, second, before, inner, weight = ctx.saved_tensors
        whole = grad_outputs[0]
        grad = whole.flatten(0, -2).contiguous()
        grad_bias = _column_sums(grad).to(weight.dtype)
        for_narrow = _weight_gradient(grad, inner, weight)
        for_inner = grad @ second
        for_wide_bias = _column_sums(for_inner, before, ctx.activation).to(weight.dtype)
        for_widen = _weight_gradient(for_inner, x, weight)
        return (for_inner @ first).view(whole.shape), for_widen, for_wide_bias, for_narrow, grad_bias, None


def half_linear(
    x: Float[Tensor, "*B D"], weight: Float[Tensor, "F D"], bias: Float[Tensor, "F"] | None
) -> Float[Tensor, "*B F"]:
    return _Linear.apply(x, weight, bias)  # type: ignore[no-any-return]  # torch does not say what it gives


def half_feedforward(
    x: Float[Tensor, "*B D"],
    widen: Float[Tensor, "F D"],
    wide_bias: Float[Tensor, "F"],
    narrow: Float[Tensor, "D F"],
    bias: Float[Tensor, "D"],
    activation: str,
) -> Float[Tensor, "*B D"]:
    """With one of `ACTIVATIONS`."""
    return _FeedForward.apply(x, widen, wide_bias, narrow, bias, activation)  # type: ignore[no-any-return]
