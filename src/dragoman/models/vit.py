"""ViT (Dosovitskiy et al. 2021): the encoder of a Transformer over any sequence of vectors.

    image ─ cut into patches ─┐
    series of real vectors ───┴─ linear ─┐
    class token ─────────────────────────┴─ + learnt positions ─ [ self-attention ─ feed-forward ]×L ─ norm
    the class token's vector ─ linear ─▶ a score for every label

The blocks are those of the other models here, with pre-norm. Inputs are vectors: patches of an image, or the
values of a series. There is no vocabulary, so there are no runs of it: see `learning/labels.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.config import check_sizes
from dragoman.errors import UserError
from dragoman.models.layer_stack import StackConfig, gpt_weights, stack
from dragoman.nn.layer import EncoderLayer, all_layers
from dragoman.nn.linear import xavier_linear
from dragoman.nn.mask import padding
from dragoman.nn.norm import make_norm
from dragoman.nn.positions import UNRELATED, LearnedPositions
from dragoman.shapes import Bool, Float, Tensor


@dataclass(frozen=True)
class VitConfig(StackConfig):
    """The defaults are those of ViT-B/16: patches of 16 × 16 from images of 224 × 224 in three colours."""

    num_labels: int = 1000
    input_dim: int = 3 * 16 * 16  # of a vector
    max_positions: int = 14 * 14  # vectors of a sequence, the class token not counted
    dropout: float = 0.0
    attention_dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes(self, places=["num_labels", "input_dim"])


def patches(images: Float[Tensor, "B C H W"], size: int) -> Float[Tensor, "B T I"]:
    """Squares of `size` × `size`, row by row; in each, one colour channel after the other."""
    height, width = images.shape[2:]
    if height % size or width % size:
        raise UserError(f"patches: {height} × {width} pixels cannot be cut into squares of {size}")
    cut = images.unfold(2, size, size).unfold(3, size, size)  # B C rows columns size size
    return cut.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def vit(config: VitConfig) -> "Vit":
    model = Vit(config)
    gpt_weights(model)
    # The input projection has no words' embeddings behind it: at 0.02 one number a moment is lost beside the
    # positions. Glorot & Bengio (2010) keep the size of what comes in.
    nn.init.xavier_uniform_(model.inputs.weight)
    return model


class Vit(nn.Module):
    def __init__(self, config: VitConfig) -> None:
        super().__init__()
        width = config.model_dim
        self.inputs = xavier_linear(config.input_dim, [width])
        self.class_token = nn.Parameter(torch.empty(width).normal_(std=0.02))
        self.positions = LearnedPositions(1 + config.max_positions, width)
        self.layers = cast(Sequence[EncoderLayer], stack(config, "pre"))
        self.final_norm = make_norm(width, "layer", config.norm_eps)
        self.labels = xavier_linear(width, [config.num_labels])
        self.dropout = config.dropout

    def read_layers(
        self, vectors: Float[Tensor, "B T I"], mask: Bool[Tensor, "B T"]
    ) -> list[Float[Tensor, "B P D"]]:
        """The vectors of every layer, from the embeddings on. The first of P = T + 1 positions is the class
        token."""
        x = self.inputs(vectors.masked_fill(~mask[..., None], 0.0))
        x = self.positions(torch.cat([self.class_token.expand(len(x), 1, -1), x], dim=1))
        x = F.dropout(x, self.dropout, self.training)
        visible = padding(F.pad(mask, (1, 0), value=True))
        return all_layers(self.layers, x, visible, UNRELATED, self.final_norm)

    def forward(self, vectors: Float[Tensor, "B T I"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B C"]:
        """A score for every label."""
        return self.labels(self.read_layers(vectors, mask)[-1][:, 0])
