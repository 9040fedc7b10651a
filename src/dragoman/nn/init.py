"""All initialisers."""

from collections.abc import Sequence

import torch
from torch import nn

from dragoman.nn.linear import Linear


def xavier_linear(in_dim: int, out_dims: Sequence[int], bias: bool = True, first_gain: float = 1.0) -> Linear:
    """One linear layer that holds several side by side, each initialised as if it were alone.

    Uniform in ±√(6 / (in + out)) (Glorot & Bengio 2010), the first one times `first_gain`; biases are zero.
    """
    linear = Linear(in_dim, sum(out_dims), bias=bias)
    with torch.no_grad():
        for number, block in enumerate(linear.weight.split(list(out_dims))):
            nn.init.xavier_uniform_(block, gain=first_gain if number == 0 else 1.0)
        if bias:
            linear.bias.zero_()
    return linear


def normal_linear(in_dim: int, out_dim: int, gain: float = 1.0) -> Linear:
    """Normal with variance gain / in; biases are zero (Gehring et al. 2017, section 3.5).

    The gain is 4 before a GLU and 1 elsewhere, each times the share of the input that dropout keeps.
    """
    linear = Linear(in_dim, out_dim)
    nn.init.normal_(linear.weight, std=(gain / in_dim) ** 0.5)
    nn.init.zeros_(linear.bias)
    return linear


def embedding_weight(size: int, dim: int) -> nn.Parameter:
    """Normal with variance 1/D: embeddings scaled by √D have unit variance, and so have tied logits."""
    return nn.Parameter(torch.empty(size, dim).normal_(std=dim**-0.5))


def gpt_weights(model: nn.Module, num_layers: int | None = None) -> None:
    """Normal with standard deviation 0.02 throughout (Radford et al. 2018, section 4.1; Devlin et al. 2019).
    With `num_layers` L, the 2·L projections that add to the residual stream begin with 1/√(2·L) of it
    (Radford et al. 2019, section 2.3). Biases are zero, norms begin at 1."""
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            added = name.endswith(("self_attention.out.weight", "feedforward.narrow.weight"))
            shrink = (2 * num_layers) ** -0.5 if added and num_layers else 1.0
            nn.init.normal_(parameter, std=0.02 * shrink)


def position_weight(size: int, dim: int) -> nn.Parameter:
    """Normal with standard deviation 0.1 (Gehring et al. 2017, section 3.5)."""
    return nn.Parameter(torch.empty(size, dim).normal_(std=0.1))


def xavier_table(rows: int, dim: int) -> nn.Parameter:
    """Rows that are added to keys or values: as a linear layer of this shape."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(rows, dim)))


def bias_table(rows: int, num_heads: int, model_dim: int) -> nn.Parameter:
    """Numbers that are added to scores: normal with variance 1/D, as T5 begins (Raffel et al. 2020)."""
    return nn.Parameter(torch.empty(rows, num_heads).normal_(std=model_dim**-0.5))


def recurrent_weights(layer: nn.RNNBase) -> None:
    """Gate by gate: Xavier for input weights, orthogonal for recurrent weights (Saxe et al. 2014).

    Biases are zero, but that of an LSTM's forget gate is 1 (Jozefowicz et al. 2015).
    """
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            gates = parameter.split(layer.hidden_size)
            for gate in gates:
                if name.startswith("weight_ih"):
                    nn.init.xavier_uniform_(gate)
                elif name.startswith("weight_hh"):
                    nn.init.orthogonal_(gate)
                elif name.startswith("weight_hr"):  # the projection of an LSTM that has one
                    nn.init.xavier_uniform_(gate)
                else:
                    gate.zero_()
            if isinstance(layer, nn.LSTM) and name.startswith("bias_ih"):
                gates[1].fill_(1.0)  # torch keeps the gates in the order input, forget, cell, output
