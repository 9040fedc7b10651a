"""Weight normalisation (Salimans & Kingma 2016): the length of a row of weights is learnt apart from its
direction.

    w = g · v / ‖v‖          h = w x + b = (g / ‖v‖) · (v x) + b

The product is taken with v, so kernels and int8 forms of a plain linear layer stay valid; the factors come
after it. At first g = ‖v‖, and the layer is the plain one.
"""

import torch
from torch import nn

from dragoman.nn.linear import Linear, linear, normal_linear
from dragoman.shapes import Float, Tensor


class NormedLinear(Linear):
    """A linear layer with a learnt length for each of its rows. It takes the weights of a plain layer."""

    takes_pairs = False

    def __init__(self, plain: Linear) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = plain.in_features, plain.out_features
        self.weight, self.bias = plain.weight, plain.bias
        with torch.no_grad():
            self.gain = nn.Parameter(plain.weight.norm(dim=1))

    def forward(self, input: Float[Tensor, "*B D"]) -> Float[Tensor, "*B F"]:
        factors = self.gain / self.weight.norm(dim=1)
        scaled = linear(input, self.weight, None, self) * factors
        return scaled + self.bias


def normed_linear(in_dim: int, out_dim: int, gain: float = 1.0) -> NormedLinear:
    """`normal_linear` with learnt lengths."""
    return NormedLinear(normal_linear(in_dim, out_dim, gain))
