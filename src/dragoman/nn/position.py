"""Where a token stands: sinusoids (Vaswani et al. 2017, section 3.5), or a learnt row for every place."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.nn.init import position_weight
from dragoman.shapes import Float, Tensor

SinusoidLayout = Literal["interleaved", "halves"]
_TABLE_LENGTH = 512


def sinusoids(
    length: int, dim: int, base: float = 10000.0, layout: SinusoidLayout = "interleaved", start: int = 0
) -> Float[Tensor, "T D"]:
    """PE(pos, 2i) = sin(pos / base^(2i/D)), PE(pos, 2i+1) = cos(the same).

    `interleaved` is the paper's order; `halves` puts all sines before all cosines, as Marian does.
    """
    rates = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angles = torch.arange(start, start + length, dtype=torch.float64)[:, None] * rates  # T D/2
    if layout == "halves":
        return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :dim]
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)[:, :dim]


class SinusoidalPositions(nn.Module):
    """Adds its sinusoid to every position. No limit on length: beyond the table rows are computed."""

    table: Tensor

    def __init__(self, dim: int, layout: SinusoidLayout = "interleaved") -> None:
        super().__init__()
        self.dim = dim
        self.layout: SinusoidLayout = layout
        self.register_buffer("table", sinusoids(_TABLE_LENGTH, dim, layout=layout).float(), persistent=False)

    def forward(self, x: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:
        end = start + x.size(1)
        if end <= _TABLE_LENGTH and x.dtype != torch.float64:
            return x + self.table[start:end].to(x.dtype)
        rows = sinusoids(x.size(1), self.dim, layout=self.layout, start=start)
        return x + rows.to(device=x.device, dtype=x.dtype)


class LearnedPositions(nn.Module):
    """Adds a learnt row to every position (Gehring et al. 2017, section 3.1).

    A longer sequence is no error: all positions beyond the table share its last row.
    """

    def __init__(self, max_positions: int, dim: int) -> None:
        super().__init__()
        self.weight = position_weight(max_positions, dim)

    def forward(self, x: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:
        end = start + x.size(1)
        if end <= len(self.weight):
            return x + self.weight[start:end]
        places = torch.arange(start, end, device=x.device).clamp(max=len(self.weight) - 1)
        return x + F.embedding(places, self.weight)
