"""Where a token stands: sinusoidal positions (Vaswani et al. 2017, section 3.5)."""

from typing import Literal

import torch
from torch import nn

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
