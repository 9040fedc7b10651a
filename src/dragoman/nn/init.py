"""Every initialiser, in one place."""

from collections.abc import Sequence

import torch
from torch import nn


def xavier_linear(in_dim: int, out_dims: Sequence[int], bias: bool = True) -> nn.Linear:
    """One linear layer that holds several side by side, each one initialised as if it stood alone.

    Uniform in ±√(6 / (in + out)) (Glorot & Bengio 2010); biases are zero.
    """
    linear = nn.Linear(in_dim, sum(out_dims), bias=bias)
    with torch.no_grad():
        for block in linear.weight.split(list(out_dims)):
            nn.init.xavier_uniform_(block)
        if bias:
            linear.bias.zero_()
    return linear


def embedding_weight(size: int, dim: int) -> nn.Parameter:
    """Normal with variance 1/D: scaled by √D, an embedding has unit variance; tied, so have the logits."""
    return nn.Parameter(torch.empty(size, dim).normal_(std=dim**-0.5))
