"""Words and their places in one kernel."""

import torch
import triton
import triton.language as tl

from dragoman.shapes import Float, Int, Tensor


@triton.jit
def _embed(
    out,
    last,
    position,
    table,
    places,
    scale,
    pad_id,
    beams: tl.constexpr,
    dim: tl.constexpr,
    pad: tl.constexpr,
):
    row, dims = tl.program_id(0), tl.arange(0, pad)
    inside = dims < dim
    word, place = tl.load(last + row), tl.load(position + row // beams)
    vector = tl.load(table + word * dim + dims, mask=inside, other=0.0).to(tl.float32)
    vector = tl.where(word == pad_id, 0.0, vector)
    where = tl.load(places + place * dim + dims, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * dim + dims, (vector * scale + where).to(out.dtype.element_ty), mask=inside)


def embed(
    last: Int[Tensor, "B K"],
    position: Int[Tensor, "B"],
    table: Float[Tensor, "V D"],
    places: Float[Tensor, "T D"],
    scale: float,
    pad_id: int,
) -> Float[Tensor, "B K D"]:
    """The vector of every word times `scale`, and what is added at its position."""
    dim = table.size(1)
    out = torch.empty(*last.shape, dim, dtype=table.dtype, device=table.device)
    _embed[(last.numel(),)](
        out,
        last,
        position,
        table,
        places,
        scale,
        pad_id,
        beams=last.size(1),
        dim=dim,
        pad=triton.next_power_of_2(dim),
    )
    return out
