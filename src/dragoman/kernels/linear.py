"""Linear layers that learn in half precision from weights that are kept in float32.

    y = x Wᵀ + b                   dx = dy W      dW = dyᵀ x     db = Σ dy
    y = relu(x W₁ᵀ + b₁) W₂ᵀ + b₂

A gradient of a weight is summed in float32 to the end and never rounded; that of a bias comes out of one pass
over dy, and where a relu stood, of the very pass that takes it back.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from dragoman.kernels.sums import add_parts
from dragoman.shapes import Float, Tensor

_COLUMNS, _ROWS, _WARPS = 64, 32, 4  # of a tile
_PARTS = 128  # partial sums of a column


@triton.jit(do_not_specialize=["rows", "turns"])
def _sum_columns(
    parts, grad, kept, rows, turns, width: tl.constexpr, tile: tl.constexpr, columns: tl.constexpr,
    masked: tl.constexpr,
):  # fmt: skip
    """Sums over `turns` tiles of rows; where `masked`, of what `kept` let through, which is written back."""
    column = tl.program_id(0) * columns + tl.arange(0, columns)
    total = tl.zeros((tile, columns), dtype=tl.float32)
    for turn in range(turns):
        row = (tl.program_id(1) * turns + turn) * tile + tl.arange(0, tile)
        inside = (row < rows)[:, None] & (column < width)[None, :]
        at = row.to(tl.int64)[:, None] * width + column[None, :]
        value = tl.load(grad + at, mask=inside, other=0.0)
        if masked:
            open_ = tl.load(kept + at, mask=inside, other=0.0) > 0
            value = tl.where(open_, value, 0.0)
            tl.store(grad + at, value, mask=inside)
        total += value.to(tl.float32)
    tl.store(parts + tl.program_id(1) * width + column, tl.sum(total, axis=0), mask=column < width)


def _column_sums(grad: Tensor, kept: Tensor | None = None) -> Tensor:
    """Σ over the rows in float32. With `kept`, what a relu gave, the gradient is taken back through it in
    place first."""
    rows, width = grad.shape
    turns = triton.cdiv(triton.cdiv(rows, _ROWS), _PARTS)
    count = triton.cdiv(rows, _ROWS * turns)
    parts = torch.empty(count, width, dtype=torch.float32, device=grad.device)
    _sum_columns[(triton.cdiv(width, _COLUMNS), count)](
        parts,
        grad,
        grad if kept is None else kept,
        rows,
        turns,
        width=width,
        tile=_ROWS,
        columns=_COLUMNS,
        masked=kept is not None,
        num_warps=_WARPS,
    )
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
        ctx: Any, x: Tensor, widen: Tensor, wide_bias: Tensor, narrow: Tensor, bias: Tensor
    ) -> Tensor:
        flat, first, second = x.flatten(0, -2), widen.to(x.dtype), narrow.to(x.dtype)
        inner = torch._addmm_activation(wide_bias.to(x.dtype), flat, first.t())  # with a relu
        out = torch.addmm(bias.to(x.dtype), inner, second.t())
        ctx.save_for_backward(flat, first, second, inner, widen)
        return out.view(x.shape)

    @staticmethod
    @once_differentiable
    def backward(  # type: ignore[override]  # as above
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        x, first, second, inner, weight = ctx.saved_tensors
        whole = grad_outputs[0]
        grad = whole.flatten(0, -2).contiguous()
        grad_bias = _column_sums(grad).to(weight.dtype)
        for_narrow = _weight_gradient(grad, inner, weight)
        for_inner = grad @ second
        for_wide_bias = _column_sums(for_inner, inner).to(weight.dtype)
        for_widen = _weight_gradient(for_inner, x, weight)
        return (for_inner @ first).view(whole.shape), for_widen, for_wide_bias, for_narrow, grad_bias


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
) -> Float[Tensor, "*B D"]:
    return _FeedForward.apply(x, widen, wide_bias, narrow, bias)  # type: ignore[no-any-return]
