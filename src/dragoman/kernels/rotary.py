"""Rotary positions of projected queries and keys in one pass (`nn/positions.py` has the formula).

    before   queries | keys | values        rotated with the angles of its row:   queries, keys
    after    queries | keys | values        copied:                               values

The gradient is rotated back by the same angles.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from dragoman.shapes import Float, Tensor

_TILE, _WARPS = 2048, 4  # pairs of a tile


@triton.jit(do_not_specialize=["rows"])
def _rotate(
    out, x, cos, sin, rows, angle_stride, vectors: tl.constexpr, half: tl.constexpr, rest: tl.constexpr,
    pairs_pad: tl.constexpr, rest_pad: tl.constexpr, interleaved: tl.constexpr, back: tl.constexpr,
    tile: tl.constexpr,
):  # fmt: skip
    """`vectors` of 2 · `half` numbers in a row are rotated, `rest` numbers after them are copied."""
    row, pair = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, pairs_pad)
    start = row.to(tl.int64)[:, None] * (vectors * 2 * half + rest)
    inside = (row < rows)[:, None] & (pair < vectors * half)[None, :]
    angle = pair % half
    if interleaved:
        first = 2 * pair
        second = first + 1
    else:
        first = (pair // half) * (2 * half) + angle
        second = first + half
    at, beside = start + first[None, :], start + second[None, :]
    left = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    right = tl.load(x + beside, mask=inside, other=0.0).to(tl.float32)
    turned_by = row.to(tl.int64)[:, None] * angle_stride + angle[None, :]
    across = tl.load(cos + turned_by, mask=inside, other=0.0).to(tl.float32)
    along = tl.load(sin + turned_by, mask=inside, other=0.0).to(tl.float32)
    if back:
        along = -along
    turned = left * across - right * along
    tl.store(out + at, turned.to(out.dtype.element_ty), mask=inside)
    turned = left * along + right * across
    tl.store(out + beside, turned.to(out.dtype.element_ty), mask=inside)
    more = tl.arange(0, rest_pad)
    copied = (row < rows)[:, None] & (more < rest)[None, :]
    at = start + vectors * 2 * half + more[None, :]
    tl.store(out + at, tl.load(x + at, mask=copied, other=0.0), mask=copied)


def _run(x: Tensor, cos: Tensor, sin: Tensor, heads: int, interleaved: bool, back: bool) -> Tensor:
    x = x.contiguous()
    half, width = cos.size(1), x.size(-1)
    vectors = 2 * heads
    rows, rest = x.numel() // width, width - vectors * 2 * half
    pairs_pad = triton.next_power_of_2(vectors * half)
    tile = max(1, _TILE // pairs_pad)
    out = torch.empty_like(x)
    _rotate[(triton.cdiv(rows, tile),)](
        out, x, cos, sin, rows, cos.stride(0), vectors=vectors, half=half, rest=rest, pairs_pad=pairs_pad,
        rest_pad=triton.next_power_of_2(rest), interleaved=interleaved, back=back, tile=tile,
        num_warps=_WARPS,
    )  # fmt: skip
    return out


class _Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor, heads: int, interleaved: bool) -> Tensor:
        ctx.save_for_backward(cos, sin)
        ctx.settings = heads, interleaved
        return _run(x, cos, sin, heads, interleaved, back=False)

    @staticmethod
    @once_differentiable
    def backward(  # type: ignore[override]  # the decorator hides the names of the parameters
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        return _run(grad_outputs[0], *ctx.saved_tensors, *ctx.settings, back=True), None, None, None, None


def rotate(
    query_key_value: Float[Tensor, "*B J"],
    cos: Float[Tensor, "N A"],
    sin: Float[Tensor, "N A"],
    heads: int,
    interleaved: bool,
) -> Float[Tensor, "*B J"]:
    """Rotate the queries and keys of every row by the angles of that row; there are N rows in all. `cos` and
    `sin` have the same strides."""
    return _Rotate.apply(query_key_value, cos, sin, heads, interleaved)  # type: ignore[no-any-return]
