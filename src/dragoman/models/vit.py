"""ViT (Dosovitskiy et al. 2021): the encoder of a Transformer over any sequence of vectors.

    image ─ cut into patches ─┐
    series of real vectors ───┴─ linear ─┐
    class token ─────────────────────────┴─ + learnt positions ─ [ self-attention ─ feed-forward ]×L ─ norm

With `stem: convolution`, small convolutions over the whole image take the place of the linear layer.

The blocks are those of the other models here, with pre-norm. Inputs are vectors: patches of an image, or of
the values of a series. A head (`task_heads.py`) reads the class token for a label, or all patches for a
forecast.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.config import LEFT_OUT, check_sizes
from dragoman.models.abilities import Abilities
from dragoman.models.base import Memory, Vocab
from dragoman.models.layer_stack import StackConfig, gpt_weights, stack
from dragoman.nn.conv_stem import ConvStem, patch_side
from dragoman.nn.dropout import dropout
from dragoman.nn.layer import EncoderLayer, all_layers
from dragoman.nn.linear import TokenEmbedding, xavier_linear
from dragoman.nn.mask import padding
from dragoman.nn.norm import make_norm
from dragoman.nn.positions import UNRELATED, LearnedPositions
from dragoman.shapes import Bool, Float, Tensor


@dataclass(frozen=True)
class VitConfig(StackConfig):
    """The defaults are those of ViT-B/16: patches of 16 × 16 from images of 224 × 224 in three colours."""

    input_dim: int = 3 * 16 * 16  # of a vector
    max_positions: int = 14 * 14  # vectors of a sequence, the class token not counted
    dropout: float = 0.0
    attention_dropout: float = 0.0
    stem: Literal["linear", "convolution"] = field(default="linear", metadata=LEFT_OUT)
    channels: int = field(default=3, metadata=LEFT_OUT)
    """Of a patch, and patches in a row of the image; both for the convolutional stem alone."""
    columns: int = field(default=14, metadata=LEFT_OUT)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes(self, places=["input_dim", "channels", "columns"])
        if self.stem == "convolution":
            patch_side(self.input_dim, self.channels)

    @property
    def abilities(self) -> Abilities:
        return Abilities(writes=False, vectors=self.input_dim, pooling="first", max_length=self.max_positions)

    @property
    def scale_embeddings(self) -> bool:
        """False: as the encoder of another decoder (`mixed`), it has no embeddings to scale or tie."""
        return False

    tie_embeddings = output_bias = scale_embeddings


def vit(config: VitConfig, vocab: Vocab) -> "Vit":
    model = Vit(config)
    model.vocab, model.abilities = vocab, config.abilities
    return model


class Vit(nn.Module):
    vocab: Vocab
    abilities: Abilities

    def __init__(self, config: VitConfig) -> None:
        super().__init__()
        width = config.model_dim
        if config.stem == "convolution":
            self.inputs = ConvStem(config.input_dim, config.channels, config.columns, width)
        else:
            self.inputs = xavier_linear(config.input_dim, [width])
        self.class_token = nn.Parameter(torch.empty(width).normal_(std=0.02))
        self.positions = LearnedPositions(1 + config.max_positions, width)
        self.layers = cast(Sequence[EncoderLayer], stack(config, "pre"))
        self.final_norm = make_norm(width, "layer", config.norm_eps)
        self.dropout = config.dropout
        gpt_weights(self)
        # The input projection has no words' embeddings behind it: at 0.02 one number a moment is lost beside
        # the positions. Glorot & Bengio (2010) keep the size of what comes in.
        if isinstance(self.inputs, ConvStem):
            self.inputs.reset()
        else:
            nn.init.xavier_uniform_(self.inputs.weight)

    def read(self, vectors: Float[Tensor, "B T I"], mask: Bool[Tensor, "B P"]) -> Float[Tensor, "B P D"]:
        """One vector for each of P = T + 1 places, the first of which is the class token."""
        return self.read_layers(vectors, mask)[-1]

    forward = read

    def read_layers(
        self, vectors: Float[Tensor, "B T I"], mask: Bool[Tensor, "B P"]
    ) -> list[Float[Tensor, "B P D"]]:
        """The vectors of every layer, from the embeddings on."""
        x = vectors.masked_fill(~mask[:, 1:, None], 0.0).to(self.class_token.dtype)
        x = self.inputs(x)
        x = self.positions(torch.cat([self.class_token.expand(len(x), 1, -1), x], dim=1))
        x = dropout(x, self.dropout, self.training)
        return all_layers(self.layers, x, padding(mask), UNRELATED, self.final_norm)


class VitEncoder(Vit):
    """The encoder for a decoder: the memory has the patches, without the class token."""

    def __init__(self, config: VitConfig, embedding: TokenEmbedding) -> None:  # noqa: ARG002 (no pieces)
        super().__init__(config)

    def forward(self, vectors: Float[Tensor, "B T I"], mask: Bool[Tensor, "B T"]) -> Memory:
        return Memory(self.read(vectors, F.pad(mask, (1, 0), value=True))[:, 1:], mask)
