"""The position-wise network: FFN(x) = f(x W₁ + b₁) W₂ + b₂ (Vaswani et al. 2017, equation 2)."""

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from torch import nn

from dragoman.nn.init import xavier_linear
from dragoman.shapes import Float, Tensor

Activation = Literal["relu", "gelu", "silu"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


class FeedForward(nn.Module):
    def __init__(
        self, model_dim: int, ff_dim: int, dropout: float = 0.0, activation: Activation = "relu"
    ) -> None:
        super().__init__()
        self.widen = xavier_linear(model_dim, [ff_dim])
        self.narrow = xavier_linear(ff_dim, [model_dim])
        self.activation = ACTIVATIONS[activation]
        self.dropout = dropout

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        inner = self.activation(self.widen(x))  # *B F
        return self.narrow(F.dropout(inner, self.dropout, self.training) if self.dropout else inner)
