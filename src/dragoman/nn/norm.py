"""Residual connections, and where their norm stands.

post (the paper):  x ─┬─ sublayer ─ dropout ─ + ─ norm ─▶      LayerNorm(x + Sublayer(x))
                      └───────────────────────┘
pre:               x ─┬─ norm ─ sublayer ─ dropout ─ + ─▶      x + Sublayer(LayerNorm(x))
                      └──────────────────────────────┘

layer:  (x − μ) / √(σ² + ε) ⊙ γ + β     over the width of one position (Ba et al. 2016)
rms:    x / √(mean x² + ε) ⊙ γ          the same without centring (Zhang & Sennrich 2019)
"""

from typing import Literal

import torch.nn.functional as F
from torch import nn

from dragoman.shapes import Float, Tensor

NormPlace = Literal["post", "pre"]
NormKind = Literal["layer", "rms"]


def make_norm(dim: int, kind: NormKind, eps: float) -> nn.Module:
    return nn.RMSNorm(dim, eps=eps) if kind == "rms" else nn.LayerNorm(dim, eps=eps)


class Residual(nn.Module):
    """The two halves around a sublayer: `before` gives its input, `after` takes its output."""

    def __init__(
        self, dim: int, dropout: float, place: NormPlace, eps: float, kind: NormKind = "layer"
    ) -> None:
        super().__init__()
        self.norm = make_norm(dim, kind, eps)
        self.dropout, self.place = dropout, place

    def before(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        return self.norm(x) if self.place == "pre" else x

    def after(self, x: Float[Tensor, "B T D"], sublayer: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        joined = x + F.dropout(sublayer, self.dropout, self.training)
        return self.norm(joined) if self.place == "post" else joined
