"""Vectors of pieces from their characters alone (Kim et al. 2016; Peters et al. 2018).

    characters ─ embed ─┬ convolution of width 1 ─ max ┬ relu ─ [ highway ] ─ projection ─▶ vector
                        ├ convolution of width 2 ─ max ┤
                        └ …                            ┘

Characters are UTF-8 bytes. A table says how the pieces of a vocabulary are spelt. It is given as data and
saved with the weights, so the network never sees a tokenizer. A piece without a spelling, such as `<s>`, is
written as its number after a symbol that no text contains.
"""

from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.nn.init import embedding_weight, xavier_linear
from dragoman.shapes import Float, Int, Tensor

_PAD, _BEGIN, _END, _CONTROL, _FIRST_BYTE = range(5)
SYMBOLS = _FIRST_BYTE + 256


def spelling_table(spellings: Sequence[bytes], width: int) -> Int[Tensor, "V C"]:
    """Every piece as `begin … end`, padded. Pieces that are too long are cut."""
    table = torch.full((len(spellings), width), _PAD)
    for number, spelling in enumerate(spellings):
        inner = [_FIRST_BYTE + byte for byte in spelling or str(number).encode()]
        inner = inner if spelling else [_CONTROL, *inner]
        row = [_BEGIN, *inner[: width - 2], _END]
        table[number, : len(row)] = torch.tensor(row)
    return table


class Highway(nn.Module):
    """y = g ⊙ relu(W x + b) + (1 − g) ⊙ x, where g = σ(V x + c) (Srivastava et al. 2015, equation 3). c
    begins at −1, so that x dominates at first."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.both = xavier_linear(dim, [dim, dim])
        with torch.no_grad():
            self.both.bias[dim:] = -1.0

    def forward(self, x: Float[Tensor, "U D"]) -> Float[Tensor, "U D"]:
        new, gate = self.both(x).chunk(2, dim=-1)
        gate = torch.sigmoid(gate)
        return gate * F.relu(new) + (1 - gate) * x


class CharacterEmbedding(nn.Module):
    """Ids to vectors through their spelling. Every distinct piece of a batch is computed once."""

    table: Tensor

    def __init__(
        self,
        vocab_size: int,
        max_characters: int,
        character_dim: int,
        filters: Sequence[Sequence[int]],
        num_highway: int,
        out_dim: int,
    ) -> None:
        """`filters` are pairs of width and number."""
        super().__init__()
        self.weight = embedding_weight(SYMBOLS, character_dim)
        convolutions = nn.ModuleList(nn.Conv1d(character_dim, count, width) for width, count in filters)
        self.convolutions = cast(Sequence[nn.Conv1d], convolutions)
        features = sum(count for _, count in filters)
        self.highways = nn.ModuleList(Highway(features) for _ in range(num_highway))
        self.out = xavier_linear(features, [out_dim])
        self.register_buffer("table", spelling_table([b""] * vocab_size, max_characters))

    def spell(self, spellings: Sequence[bytes]) -> None:
        """Set the spelling of every piece of the vocabulary."""
        self.table.copy_(spelling_table(spellings, self.table.size(1)))

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        different, places = ids.unique(return_inverse=True)
        spelt = self.table[different]  # U C
        x = F.embedding(spelt, self.weight).masked_fill((spelt == _PAD)[..., None], 0.0).transpose(1, 2)
        found = [convolution(x).amax(dim=-1) for convolution in self.convolutions]  # each U filters
        x = F.relu(torch.cat(found, dim=-1))
        for highway in self.highways:
            x = highway(x)
        return F.embedding(places, self.out(x))
