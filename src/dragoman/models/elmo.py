"""ELMo (Peters et al. 2018): two language models over the same text, one in each direction.

    ids ─ characters ─ convolutions, highway, projection ─▶ x
    x ─ lstm ─┬─ lstm ─ + ─▶ forward: what comes next         ┐ embedding and softmax are shared,
              └─────────┘                                     │ all else is apart
    x ─ lstm ─┬─ lstm ─ + ─▶ backward: what has come before   ┘
              └─────────┘

Every LSTM has a wide cell and a narrow output, by a projection that also goes back into it (Sak et al. 2014).
The vector of a piece in layer j is [forward_j ; backward_j], and [x ; x] in layer 0. A task mixes the layers
(`models/task_heads.py`). The forward model has read all pieces up to this one, the backward model all pieces
from this one on. Neither has seen the piece that it predicts.

The vector x of a piece comes from its characters alone (Kim et al. 2016):

    characters ─ embed ─┬ convolution of width 1 ─ max ┬ relu ─ [ highway ] ─ projection ─▶ x
                        ├ convolution of width 2 ─ max ┤
                        └ …                            ┘

Characters are UTF-8 bytes. A table says how the pieces of a vocabulary are spelt. It is given as data and
saved with the weights, so the network never sees a tokenizer. A piece without a spelling, such as `<s>`, is
written as its number after a symbol that no text contains.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.config import WIDEST, check_counts, check_shares, check_sizes
from dragoman.errors import UserError, shown
from dragoman.models.abilities import Abilities
from dragoman.models.base import Vocab
from dragoman.nn.dropout import dropout
from dragoman.nn.linear import Projection, embedding_weight, xavier_linear
from dragoman.nn.mask import lengths
from dragoman.nn.recurrent_layer import recurrent_weights
from dragoman.shapes import Bool, Float, Int, Tensor

# torch warns that it has no faster CPU kernel for these layers; the warning is of no use here.
warnings.filterwarnings("ignore", message="LSTM with projections is not supported with oneDNN")


_MOST_CHARACTERS, _MOST_FILTERS = 1024, 100
_PAD, _BEGIN, _END, _CONTROL, _FIRST_BYTE = range(5)
CHARACTER_SYMBOLS = _FIRST_BYTE + 256


@dataclass(frozen=True)
class ElmoConfig:
    num_layers: int = 2
    model_dim: int = 512  # of each direction
    hidden_dim: int = 4096  # of the cells
    character_dim: int = 16
    max_characters: int = 50
    filters: tuple[tuple[int, ...], ...] = (
        (1, 32),
        (2, 32),
        (3, 64),
        (4, 128),
        (5, 256),
        (6, 512),
        (7, 1024),
    )  # pairs of width and number
    num_highway: int = 2
    dropout: float = 0.1

    def __post_init__(self) -> None:
        check_sizes(self, ["num_layers", "num_highway"], ["model_dim", "hidden_dim", "character_dim"])
        check_counts(self, "max_characters", most=_MOST_CHARACTERS)
        check_shares(self, "dropout")
        if self.model_dim >= self.hidden_dim:
            raise UserError(
                f"model_dim: the projection has to be narrower than hidden_dim, which is {self.hidden_dim}, "
                f"found {self.model_dim}"
            )
        if not 0 < len(self.filters) <= _MOST_FILTERS or not all(map(_is_filter, self.filters)):
            raise UserError(
                "filters: expected pairs of width and number, each at least 1, such as [[1, 32], [3, 64]], "
                f"found {shown([list(pair) for pair in self.filters])}"
            )
        least = max(3, *(pair[0] for pair in self.filters))
        if self.max_characters < least:
            raise UserError(
                f"max_characters: expected at least {least}, what the widest filter sees, found "
                f"{self.max_characters}"
            )

    @property
    def abilities(self) -> Abilities:
        return Abilities(writes=False, reads_both_ways=True, needs_spelling=True)


def _is_filter(pair: Sequence[int]) -> bool:
    return len(pair) == 2 and 1 <= pair[0] <= _MOST_CHARACTERS and 1 <= pair[1] <= WIDEST


def elmo(config: ElmoConfig, vocab: Vocab) -> "Elmo":
    return Elmo(config, vocab)


class Elmo(nn.Module):
    def __init__(self, config: ElmoConfig, vocab: Vocab) -> None:
        super().__init__()
        width = config.model_dim
        self.vocab, self.abilities = vocab, config.abilities
        self.embedding = CharacterEmbedding(
            vocab.tgt_size,
            config.max_characters,
            config.character_dim,
            config.filters,
            config.num_highway,
            width,
        )
        self.ahead, self.back = _Direction(config), _Direction(config)
        self.projection = Projection(embedding_weight(vocab.tgt_size, width), bias=True)
        self.dropout = config.dropout

    def spell(self, spellings: Sequence[bytes]) -> None:
        self.embedding.spell(spellings)

    def both_ways(
        self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"]
    ) -> tuple[list[Float[Tensor, "B T D"]], list[Float[Tensor, "B T D"]]]:
        """The layers of each direction, the embeddings before them."""
        x = dropout(self.embedding(ids), self.dropout, self.training)
        turned = self.back(_turned(x, mask))
        return [x, *self.ahead(x)], [x, *(_turned(layer, mask) for layer in turned)]

    def read(
        self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T W"]:
        """Both directions of the last layer side by side."""
        return self.read_layers(ids, mask, segments)[-1]

    forward = read

    def read_layers(
        self,
        ids: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        segments: Int[Tensor, "B T"],  # noqa: ARG002 (texts are told apart by the marks between them)
    ) -> list[Float[Tensor, "B T W"]]:
        return [torch.cat(pair, dim=-1) for pair in zip(*self.both_ways(ids, mask), strict=True)]

    def project(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """Scores for the pieces that one direction may go on with."""
        return self.projection(hidden)


class _Direction(nn.Module):
    """One of the two language models, without embedding and softmax. It reads from left to right; padding
    stands behind all that is read."""

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__()
        width, cells = config.model_dim, config.hidden_dim
        layers = nn.ModuleList(
            nn.LSTM(width, cells, proj_size=width, batch_first=True) for _ in range(config.num_layers)
        )
        self.layers = cast(Sequence[nn.LSTM], layers)
        for layer in self.layers:
            recurrent_weights(layer)
        self.dropout = config.dropout

    def forward(self, x: Float[Tensor, "B T D"]) -> list[Float[Tensor, "B T D"]]:
        found: list[Tensor] = []
        for layer in self.layers:
            out = dropout(layer(found[-1] if found else x)[0], self.dropout, self.training)
            found.append(found[-1] + out if found else out)
        return found


def _turned(x: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
    """Every row backwards, its padding where it is; twice, it is as before."""
    places = torch.arange(x.size(1), device=x.device)
    back = lengths(mask)[:, None] - 1 - places
    return x.take_along_dim(torch.where(back < 0, places, back)[..., None], dim=1)


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
        self.weight = embedding_weight(CHARACTER_SYMBOLS, character_dim)
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
