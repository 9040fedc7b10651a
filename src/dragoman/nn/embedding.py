"""Ids to vectors, and vectors back to scores over the vocabulary."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.nn import packed
from dragoman.nn.init import embedding_weight
from dragoman.shapes import Float, Int, Tensor

SILENCE = -1e4
"""Added to a score: nothing of it is left in a softmax, and every number type can hold it."""


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


class Projection(nn.Module):
    """Scores for every piece of the vocabulary; the matrix may be an embedding's (Press & Wolf 2017).

    On a GPU, half-precision weights give float32 scores outside training: rounded to 8 bits, the best pieces
    of a step would be hard to tell apart. `silent` pieces are never said, and have no part in a softmax."""

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
        return packed.linear(hidden, weight, self.bias)

    def among(self, pieces: Int[Tensor, "C"]) -> packed.Fixed:
        """The scores of some pieces alone; their rows are taken out once."""
        return packed.Fixed(self.weight, self.bias, pieces)


def _is_half(hidden: Tensor, weight: Tensor) -> bool:
    return hidden.dtype == weight.dtype and weight.dtype in (torch.bfloat16, torch.float16)
