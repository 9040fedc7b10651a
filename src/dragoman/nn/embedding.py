"""Token embeddings, and the projection back to logits over the vocabulary."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.nn.linear import Multiplies, SelectedRows, linear
from dragoman.shapes import Float, Int, Tensor

SILENCE = -1e4
"""Added to a logit: its probability becomes 0. Every float type can represent it."""


class TokenEmbedding(nn.Module):
    """One row of a matrix for every id, times √D where `scale` is set. Padding is the zero vector."""

    def __init__(self, size: int, dim: int, pad_id: int, scale: bool = True) -> None:
        super().__init__()
        self.weight = embedding_weight(size, dim)
        self.pad_id = pad_id
        self.scale = math.sqrt(dim) if scale else 1.0

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        vectors = F.embedding(ids, self.weight)
        if self.scale != 1:
            vectors = vectors * self.scale
        return vectors.masked_fill((ids == self.pad_id)[..., None], 0.0)


class Projection(Multiplies):
    """Logits over the vocabulary. The weight may be shared with an embedding (Press & Wolf 2017).

    On a GPU, half-precision weights give float32 logits outside training: in 8 bits, the best pieces of a
    step could not be told apart. `silent` pieces have probability 0."""

    bias: Tensor | None

    def __init__(self, weight: nn.Parameter, bias: bool = False, silent: Sequence[int] = ()) -> None:
        super().__init__()
        self.weight = weight
        values = torch.zeros(len(weight))
        values[list(silent)] = SILENCE
        if bias:
            self.bias = nn.Parameter(values)
        else:
            self.register_buffer("bias", values if silent else None, persistent=False)

    def forward(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        weight = self.weight
        if weight.is_cuda and hidden.dim() == 2 and not torch.is_grad_enabled() and _is_half(hidden, weight):
            scores = torch.mm(hidden, weight.t(), out_dtype=torch.float32)
            return scores if self.bias is None else scores + self.bias
        return linear(hidden, weight, self.bias, self)

    def among(self, pieces: Int[Tensor, "C"]) -> SelectedRows:
        """The logits of some pieces alone; their rows are copied once."""
        return SelectedRows(self, self.bias, pieces)


def _is_half(hidden: Tensor, weight: Tensor) -> bool:
    return hidden.dtype == weight.dtype and weight.dtype in (torch.bfloat16, torch.float16)


def embedding_weight(size: int, dim: int) -> nn.Parameter:
    """Normal with variance 1/D: embeddings scaled by √D have unit variance, and so have tied logits."""
    return nn.Parameter(torch.empty(size, dim).normal_(std=dim**-0.5))
