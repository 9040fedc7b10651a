"""Residual connections and where their layer norm stands.

post (the paper):  x ─┬─ sublayer ─ dropout ─ + ─ norm ─▶      LayerNorm(x + Sublayer(x))
                      └───────────────────────┘
pre:               x ─┬─ norm ─ sublayer ─ dropout ─ + ─▶      x + Sublayer(LayerNorm(x))
                      └──────────────────────────────┘
"""

from typing import Literal

import torch.nn.functional as F
from torch import nn

from dragoman.shapes import Float, Tensor

NormPlace = Literal["post", "pre"]


class Residual(nn.Module):
    """The two halves around a sublayer: `before` gives its input, `after` takes its output.

    Layer norm: (x − μ) / √(σ² + ε) ⊙ γ + β over the width of one position (Ba et al. 2016).
    """

    def __init__(self, dim: int, dropout: float, place: NormPlace, eps: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=eps)
        self.dropout, self.place = dropout, place

    def before(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        return self.norm(x) if self.place == "pre" else x

    def after(self, x: Float[Tensor, "B T D"], sublayer: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        joined = x + F.dropout(sublayer, self.dropout, self.training)
        return self.norm(joined) if self.place == "post" else joined
