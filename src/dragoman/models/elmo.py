"""ELMo (Peters et al. 2018): two language models over the same text, one in each direction.

    ids ─ characters ─ convolutions, highway, projection ─▶ x                       (`nn/characters.py`)
    x ─ lstm ─┬─ lstm ─ + ─▶ forward: what comes next         ┐ embedding and softmax are shared,
              └─────────┘                                     │ all else is apart
    x ─ lstm ─┬─ lstm ─ + ─▶ backward: what has come before   ┘
              └─────────┘

Every LSTM has a wide cell and a narrow output, by a projection that also goes back into it (Sak et al. 2014).
The vector of a piece in layer j is [forward_j ; backward_j], and [x ; x] in layer 0. A task mixes the layers
(`models/task_heads.py`). The forward model has read all pieces up to this one, the backward model all pieces
from this one on. Neither has seen the piece that it predicts.
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
from dragoman.nn.characters import CharacterEmbedding
from dragoman.nn.embedding import Projection
from dragoman.nn.init import embedding_weight, recurrent_weights
from dragoman.nn.mask import lengths
from dragoman.shapes import Bool, Float, Int, Tensor

# torch warns that it has no faster CPU kernel for these layers; the warning is of no use here.
warnings.filterwarnings("ignore", message="LSTM with projections is not supported with oneDNN")


_MOST_CHARACTERS, _MOST_FILTERS = 1024, 100


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
        x = F.dropout(self.embedding(ids), self.dropout, self.training)
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
            out = F.dropout(layer(found[-1] if found else x)[0], self.dropout, self.training)
            found.append(found[-1] + out if found else out)
        return found


def _turned(x: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
    """Every row backwards, its padding where it is; twice, it is as before."""
    places = torch.arange(x.size(1), device=x.device)
    back = lengths(mask)[:, None] - 1 - places
    return x.take_along_dim(torch.where(back < 0, places, back)[..., None], dim=1)
