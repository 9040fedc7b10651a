"""Adds partial sums in a fixed order: the second stage of a deterministic sum over rows."""

import torch
import triton
import triton.language as tl

from dragoman.shapes import Float, Tensor

_ROWS, _COLUMNS = 128, 16


@triton.jit(do_not_specialize=["count"])
def _add_parts(out, parts, count, width: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr):
    column = tl.program_id(0) * columns + tl.arange(0, columns)
    parts += tl.program_id(1) * count * width
    total = tl.zeros((rows, columns), dtype=tl.float32)
    for first in range(0, count, rows):
        row = first + tl.arange(0, rows)
        inside = (row < count)[:, None] & (column < width)[None, :]
        total += tl.load(parts + row[:, None] * width + column[None, :], mask=inside, other=0.0)
    tl.store(out + tl.program_id(1) * width + column, tl.sum(total, axis=0), mask=column < width)


def add_parts(parts: Float[Tensor, "G P W"]) -> Float[Tensor, "G W"]:
    groups, count, width = parts.shape
    out = torch.empty(groups, width, dtype=torch.float32, device=parts.device)
    grid = triton.cdiv(width, _COLUMNS), groups
    _add_parts[grid](out, parts, count, width=width, rows=_ROWS, columns=_COLUMNS, num_warps=4)
    return out
