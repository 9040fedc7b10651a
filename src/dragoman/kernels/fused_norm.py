"""LayerNorm of a residual sum in one pass: without gradients (`add_norm`), or with dropout and gradients.

    post-norm    LayerNorm(x + dropout(y))                input of the next sublayer, and the residual
    pre-norm     x + dropout(y), and LayerNorm of it      the residual, and input of the next sublayer

The dropout mask is a hash of the index and two seeds. It is not stored; the backward pass computes it again.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from dragoman.kernels.sums import add_parts
from dragoman.shapes import Float, Tensor

_TILE, _WARPS = 4096, 4  # elements of a tile
_TILE_BACK, _WARPS_BACK = 2048, 4
_PROGRAMS = 1024  # of the backward pass: as many partial sums for weight and bias


@triton.jit
def _kept(places, seeds, threshold):
    """Whether an element is kept: a 32-bit hash of its index (two multiplications, the second seed between
    them) against the threshold."""
    first_seed, second_seed = tl.load(seeds), tl.load(seeds + 1)
    bits = places.to(tl.uint32) * 0x9E3779B1 + first_seed.to(tl.uint32)
    bits = (bits ^ (bits >> 16)) * 0x21F0AAAD
    bits = bits ^ (bits >> 15) ^ second_seed.to(tl.uint32)
    bits = (bits ^ (bits >> 16)) * 0x735A2D97
    bits = bits ^ (bits >> 15)
    return (bits >> 8).to(tl.int32) >= threshold


@triton.jit
def _joined(x, y, places, inside, seeds, threshold, scale):
    """x + dropout(y), and the mask."""
    kept = _kept(places, seeds, threshold)
    added = tl.load(y + places, mask=inside, other=0.0).to(tl.float32)
    joined = tl.load(x + places, mask=inside, other=0.0).to(tl.float32)
    return joined + tl.where(kept, added * scale, 0.0), kept


@triton.jit(do_not_specialize=["rows", "threshold"])
def _forward(
    out, total, means, spreads, x, y, weight, bias, seeds, rows, threshold, scale, eps, dim: tl.constexpr,
    pad: tl.constexpr, tile: tl.constexpr, keeps: tl.constexpr,
):  # fmt: skip
    row, dims = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, pad)
    inside = (row < rows)[:, None] & (dims < dim)[None, :]
    places = row[:, None] * dim + dims[None, :]
    joined, _ = _joined(x, y, places, inside, seeds, threshold, scale)
    if keeps:
        kept_sum = joined.to(total.dtype.element_ty)
        tl.store(total + places, kept_sum, mask=inside)
        joined = kept_sum.to(tl.float32)  # as the backward pass reads it
    mean = tl.sum(joined, axis=1) / dim
    centred = tl.where(inside, joined - mean[:, None], 0.0)
    spread = tl.rsqrt(tl.sum(centred * centred, axis=1) / dim + eps)
    gain = tl.load(weight + dims, mask=dims < dim, other=0.0).to(tl.float32)
    shift = tl.load(bias + dims, mask=dims < dim, other=0.0).to(tl.float32)
    value = centred * spread[:, None] * gain[None, :] + shift[None, :]
    tl.store(out + places, value.to(out.dtype.element_ty), mask=inside)
    tl.store(means + row, mean, mask=row < rows)
    tl.store(spreads + row, spread, mask=row < rows)


@triton.jit(do_not_specialize=["rows", "turns", "threshold"])
def _backward(
    grad_x, grad_y, grad_weight, grad_bias, grad, grad_total, means, spreads, x, y, weight, seeds, rows,
    turns, threshold, scale, dim: tl.constexpr, pad: tl.constexpr, tile: tl.constexpr,
    keeps: tl.constexpr, carries: tl.constexpr,
):  # fmt: skip
    """A program takes `turns` tiles and sums the gradients of weight and bias. With `keeps`, x is the sum x +
    dropout(y). With `carries`, that sum has a gradient of its own."""
    dims = tl.arange(0, pad)
    gain = tl.load(weight + dims, mask=dims < dim, other=0.0).to(tl.float32)
    for_weight = tl.zeros((tile, pad), dtype=tl.float32)
    for_bias = tl.zeros((tile, pad), dtype=tl.float32)
    for turn in range(turns):
        row = (tl.program_id(0) * turns + turn) * tile + tl.arange(0, tile)
        inside = (row < rows)[:, None] & (dims < dim)[None, :]
        places = row[:, None] * dim + dims[None, :]
        if keeps:
            joined = tl.load(x + places, mask=inside, other=0.0).to(tl.float32)
            kept = _kept(places, seeds, threshold)
        else:
            joined, kept = _joined(x, y, places, inside, seeds, threshold, scale)
        mean = tl.load(means + row, mask=row < rows, other=0.0)
        spread = tl.load(spreads + row, mask=row < rows, other=0.0)
        normal = tl.where(inside, (joined - mean[:, None]) * spread[:, None], 0.0)
        out = tl.load(grad + places, mask=inside, other=0.0).to(tl.float32)
        for_weight += out * normal
        for_bias += out
        out *= gain[None, :]
        along = tl.sum(out * normal, axis=1) / dim
        level = tl.sum(out, axis=1) / dim
        found = (out - level[:, None] - normal * along[:, None]) * spread[:, None]
        if carries:
            found += tl.load(grad_total + places, mask=inside, other=0.0).to(tl.float32)
        tl.store(grad_x + places, found.to(grad_x.dtype.element_ty), mask=inside)
        found = tl.where(kept, found * scale, 0.0)
        tl.store(grad_y + places, found.to(grad_y.dtype.element_ty), mask=inside)
    here = tl.program_id(0) * dim + dims
    tl.store(grad_weight + here, tl.sum(for_weight, axis=0), mask=dims < dim)
    tl.store(grad_bias + here, tl.sum(for_bias, axis=0), mask=dims < dim)


class _DropAddNorm(torch.autograd.Function):
    """With `keeps`, the sum is returned too, in the type of x; the normalised output has the type of y."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        y: Tensor,
        weight: Tensor,
        bias: Tensor,
        eps: float,
        rate: float,
        seeds: Tensor,
        keeps: bool,
    ) -> Tensor | tuple[Tensor, Tensor]:
        x, y = x.contiguous(), y.contiguous()
        dim = x.size(-1)
        rows, pad = x.numel() // dim, triton.next_power_of_2(dim)
        tile = max(1, _TILE // pad)
        out = torch.empty_like(y)
        total = torch.empty_like(x) if keeps else out
        means, spreads = torch.empty(2, rows, dtype=torch.float32, device=x.device)
        ctx.dropped = round(rate * (1 << 24)), 1 / (1 - rate)
        ctx.keeps, ctx.y_type = keeps, y.dtype
        _forward[(triton.cdiv(rows, tile),)](
            out, total, means, spreads, x, y, weight, bias, seeds, rows, *ctx.dropped, eps, dim=dim,
            pad=pad, tile=tile, keeps=keeps, num_warps=_WARPS,
        )  # fmt: skip
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(
            total if keeps else x, total if keeps else y, weight, bias, means, spreads, seeds
        )
        return (out, total) if keeps else out

    @staticmethod
    @once_differentiable
    def backward(  # type: ignore[override]  # the decorator hides the names of the parameters
        ctx: Any, *grad_outputs: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        x, y, weight, bias, means, spreads, seeds = ctx.saved_tensors
        whole, carried = grad_outputs[0], grad_outputs[1] if ctx.keeps else None
        assert whole is not None, "the normalised output is always used"
        grad, dim = whole.contiguous(), x.size(-1)
        carried = carried if carried is None else carried.contiguous()
        rows, pad = x.numel() // dim, triton.next_power_of_2(dim)
        tile = max(1, _TILE_BACK // pad)
        turns = triton.cdiv(triton.cdiv(rows, tile), _PROGRAMS)
        programs = triton.cdiv(rows, tile * turns)
        grad_x, grad_y = torch.empty_like(x), torch.empty_like(y, dtype=ctx.y_type)
        parts = torch.empty(2, programs, dim, dtype=torch.float32, device=x.device)
        _backward[(programs,)](
            grad_x, grad_y, parts[0], parts[1], grad, grad if carried is None else carried, means,
            spreads, x, y, weight, seeds, rows, turns, *ctx.dropped, dim=dim, pad=pad, tile=tile,
            keeps=ctx.keeps, carries=carried is not None, num_warps=_WARPS_BACK,
        )  # fmt: skip
        grad_weight, grad_bias = add_parts(parts)
        return grad_x, grad_y, grad_weight.to(weight.dtype), grad_bias.to(bias.dtype), None, None, None, None


def drop_add_norm(
    x: Float[Tensor, "*B D"],
    y: Float[Tensor, "*B D"],
    weight: Float[Tensor, "D"],
    bias: Float[Tensor, "D"],
    eps: float,
    rate: float,
) -> Float[Tensor, "*B D"]:
    """LayerNorm(x + dropout(y))."""
    seeds = _drawn_seeds(x, rate)
    return _DropAddNorm.apply(x, y, weight, bias, eps, rate, seeds, False)  # type: ignore[no-any-return]


def drop_add_then_norm(
    x: Float[Tensor, "*B D"],
    y: Float[Tensor, "*B D"],
    weight: Float[Tensor, "D"],
    bias: Float[Tensor, "D"],
    eps: float,
    rate: float,
) -> tuple[Float[Tensor, "*B D"], Float[Tensor, "*B D"]]:
    """x + dropout(y), in the type of x, and LayerNorm of it, in the type of y."""
    seeds = _drawn_seeds(x, rate)
    out, total = _DropAddNorm.apply(x, y, weight, bias, eps, rate, seeds, True)  # type: ignore[misc]
    return total, out


def _drawn_seeds(x: Tensor, rate: float) -> Tensor:
    """From the generator of the device: torch.manual_seed fixes them, and a captured graph draws new ones at
    every replay."""
    seeds = torch.empty(2, dtype=torch.int32, device=x.device)
    return seeds.random_(0, (1 << 31) - 1) if rate else seeds.zero_()


@triton.jit
def _add_norm(out, x, y, weight, bias, eps, dim: tl.constexpr, pad: tl.constexpr):
    row, dims = tl.program_id(0), tl.arange(0, pad)
    inside = dims < dim
    joined = tl.load(x + row * dim + dims, mask=inside, other=0.0).to(tl.float32)
    joined += tl.load(y + row * dim + dims, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(joined, axis=0) / dim
    centred = tl.where(inside, joined - mean, 0.0)
    spread = tl.rsqrt(tl.sum(centred * centred, axis=0) / dim + eps)
    gain = tl.load(weight + dims, mask=inside, other=0.0).to(tl.float32)
    shift = tl.load(bias + dims, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * dim + dims, (centred * spread * gain + shift).to(out.dtype.element_ty), mask=inside)


def add_norm(
    x: Float[Tensor, "*B D"],
    y: Float[Tensor, "*B D"],
    weight: Float[Tensor, "D"],
    bias: Float[Tensor, "D"],
    eps: float,
) -> Float[Tensor, "*B D"]:
    x, y = x.contiguous(), y.contiguous()
    out, dim = torch.empty_like(x), x.size(-1)
    _add_norm[(x.numel() // dim,)](
        out, x, y, weight, bias, eps, dim=dim, pad=triton.next_power_of_2(dim), num_warps=4 if dim > 512
        else 1,
    )  # fmt: skip
    return out
