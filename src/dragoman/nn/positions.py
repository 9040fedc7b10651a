"""Absolute positions, added to embeddings: sinusoids, or a learnt vector for every position.

    x_t + PE(t)       sinusoidal    Vaswani et al. 2017, section 3.5
    x_t + W[t]        learned       Gehring et al. 2017, section 3.1
    x_t               none

Positions that depend on the distance between two tokens are in `nn/relative_positions.py`.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.nn.init import position_weight
from dragoman.nn.mask import Packing
from dragoman.shapes import Float, Int, Tensor

SinusoidLayout = Literal["interleaved", "halves"]
_TABLE_LENGTH = 512


def sinusoids(
    length: int,
    dim: int,
    base: float = 10000.0,
    layout: SinusoidLayout = "interleaved",
    start: int = 0,
    device: torch.device | None = None,
) -> Float[Tensor, "T D"]:
    """PE(pos, 2i) = sin(pos / base^(2i/D)), PE(pos, 2i+1) = cos(the same).

    `interleaved` is the paper's order; `halves` puts all sines before all cosines, as Marian does.
    """
    rates = base ** (-torch.arange(0, dim, 2, dtype=torch.float64, device=device) / dim)
    places = torch.arange(start, start + length, dtype=torch.float64, device=device)
    angles = places[:, None] * rates  # T D/2
    if layout == "halves":
        return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :dim]
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)[:, :dim]


class SinusoidTable(nn.Module):
    """The sinusoids of the first positions are kept; those of later positions are computed when needed."""

    table: Tensor

    def __init__(self, dim: int, base: float, layout: SinusoidLayout) -> None:
        super().__init__()
        self.dim, self.base = dim, base
        self.layout: SinusoidLayout = layout
        self.register_buffer("table", sinusoids(_TABLE_LENGTH, dim, base, layout).float(), persistent=False)

    def forward(self, start: int, length: int, like: Tensor) -> Float[Tensor, "T D"]:
        """Rows from `start` on, for the device and precision of `like`."""
        if start + length <= _TABLE_LENGTH and like.dtype != torch.float64:
            return self.table[start : start + length]
        device = None if like.device.type == "mps" else like.device  # Apple's GPUs have no float64
        rows = sinusoids(length, self.dim, self.base, self.layout, start, device)
        return rows.to(torch.promote_types(like.dtype, torch.float32)).to(like.device)


class SinusoidalPositions(nn.Module):
    """Adds a sinusoid to every position. There is no limit on length."""

    def __init__(self, dim: int, layout: SinusoidLayout = "interleaved", base: float = 10000.0) -> None:
        super().__init__()
        self.sinusoids = SinusoidTable(dim, base, layout)

    def forward(self, x: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:
        return x + self.sinusoids(start, x.size(1), x).to(x.dtype)

    def packed(self, x: Float[Tensor, "1 N D"], packing: Packing) -> Float[Tensor, "1 N D"]:
        return x + F.embedding(packing.places, self.sinusoids(0, packing.longest, x).to(x.dtype))


class LearnedPositions(nn.Module):
    """Adds a learnt row to every position (Gehring et al. 2017, section 3.1).

    All positions beyond the table share its last row.
    """

    def __init__(self, max_positions: int, dim: int) -> None:
        super().__init__()
        self.weight = position_weight(max_positions, dim)

    def forward(self, x: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:
        end = start + x.size(1)
        if end <= len(self.weight):
            return x + self.weight[start:end]
        return self.at(x, torch.arange(start, end, device=x.device))

    def at(self, x: Float[Tensor, "B T D"], places: Int[Tensor, "*#B T"]) -> Float[Tensor, "B T D"]:
        """The same with a position for every token."""
        return x + F.embedding(places.clamp(max=len(self.weight) - 1), self.weight)

    def packed(self, x: Float[Tensor, "1 N D"], packing: Packing) -> Float[Tensor, "1 N D"]:
        return self.at(x, packing.places)


class NoPositions(nn.Module):
    """Leaves the embedding as it is."""

    def forward(self, x: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:  # noqa: ARG002
        return x

    def packed(self, x: Float[Tensor, "1 N D"], packing: Packing) -> Float[Tensor, "1 N D"]:  # noqa: ARG002
        return x
