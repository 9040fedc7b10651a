"""The position-wise network.

    FFN(x) = f(x W₁ + b₁) W₂ + b₂                       Vaswani et al. 2017, equation 2
    gated:   (f(x W₁ + b₁) ⊙ (x V + c)) W₂ + b₂         Shazeer 2020, equations 5 and 6

With a gate, sigmoid makes GLU, relu ReGLU, gelu GEGLU and silu SwiGLU.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.nn.init import xavier_linear
from dragoman.nn.kernel_choice import FEEDFORWARD, choose
from dragoman.shapes import Float, Tensor

Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "sigmoid"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
}
_FUSABLE = ("relu", "gelu", "gelu_tanh")


class FeedForward(nn.Module):
    """`widen` computes W₁ and, if gated, V in one matrix product."""

    def __init__(
        self,
        model_dim: int,
        ff_dim: int,
        dropout: float = 0.0,
        activation: Activation = "relu",
        gated: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.widen = xavier_linear(model_dim, [ff_dim, ff_dim] if gated else [ff_dim], bias)
        self.narrow = xavier_linear(ff_dim, [model_dim], bias)
        self.activation = ACTIVATIONS[activation]
        self.dropout, self.gated = dropout, gated
        self.fusable = activation if bias and not gated and activation in _FUSABLE else None
        """The activation, where one kernel can compute both layers."""

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return choose(FEEDFORWARD, self, x).run(self, x)

    def two_layers(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        inner = self.widen(x)  # *B F, or 2F with a gate
        if self.gated:
            opened, passed = inner.chunk(2, dim=-1)
            inner = self.activation(opened) * passed  # *B F
        else:
            inner = self.activation(inner)
        return self.narrow(F.dropout(inner, self.dropout, self.training) if self.dropout else inner)
