"""BERT (Devlin et al. 2019): an encoder alone, which sees both sides of every piece.

    ids ─ embed ─ + learnt positions ─ + segment ─ norm ─ [ self-attention ─ feed-forward ]×L ─▶ hidden
    hidden ─ linear ─ gelu ─ norm ─ embeddingᵀ ─▶ which piece was there        (masked language model)
    hidden of the first piece ─ linear ─ tanh ─ linear ─▶ does the second text follow     (next sentence)

It reads and does not write, so it has another contract: `read`, `project`, `pool` and `follows`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.models.abilities import Abilities
from dragoman.models.base import Vocab
from dragoman.models.layer_stack import StackConfig, gpt_weights, stack
from dragoman.nn.dropout import dropout
from dragoman.nn.layer import ACTIVATIONS, EncoderLayer, all_layers, read_through
from dragoman.nn.linear import Projection, TokenEmbedding, xavier_linear
from dragoman.nn.mask import Packing, packed, padding
from dragoman.nn.norm import make_norm, residual_stream
from dragoman.nn.positions import UNRELATED, LearnedPositions, position_weight
from dragoman.shapes import Bool, Float, Int, Tensor

_SEGMENTS = 2


@dataclass(frozen=True)
class BertConfig(StackConfig):
    @property
    def abilities(self) -> Abilities:
        return Abilities(
            writes=False,
            packs=True,
            graph_capture=True,
            predicts_masked=True,
            pooling="pooler",
            block_marks=3,
            max_length=self.max_positions,
        )


def bert(config: BertConfig, vocab: Vocab) -> "Bert":
    model = Bert(config, vocab)
    gpt_weights(model)
    return model


class Bert(nn.Module):
    def __init__(self, config: BertConfig, vocab: Vocab) -> None:
        super().__init__()
        width = config.model_dim
        self.vocab, self.abilities = vocab, config.abilities
        self.embedding = TokenEmbedding(vocab.tgt_size, width, vocab.pad_id, scale=False)
        self.positions = LearnedPositions(config.max_positions, width)
        self.segments = position_weight(_SEGMENTS, width)
        self.embedding_norm = make_norm(width, "layer", config.norm_eps)
        self.layers = cast(Sequence[EncoderLayer], stack(config, "post"))
        self.pooler = xavier_linear(width, [width])
        self.transform = xavier_linear(width, [width])
        self.transform_norm = make_norm(width, "layer", config.norm_eps)
        self.projection = Projection(self.embedding.weight, bias=True)
        self.next_sentence = xavier_linear(width, [2])
        self.activation, self.dropout = ACTIVATIONS[config.activation], config.dropout

    def read(
        self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        """One vector for every piece; `segments` are 0 in the first text and 1 in the second."""
        return self.read_layers(ids, mask, segments)[-1]

    forward = read

    def read_layers(
        self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"]
    ) -> list[Float[Tensor, "B T D"]]:
        x = self._begun(self.positions(self.embedding(ids)), segments)
        return all_layers(self.layers, x, padding(mask), UNRELATED)

    def packed(
        self, ids: Int[Tensor, "1 N"], packing: Packing, segments: Int[Tensor, "1 N"]
    ) -> Float[Tensor, "1 N D"]:
        """`read` for packed texts."""
        x = self._begun(self.positions.packed(self.embedding(ids), packing), segments)
        return read_through(self.layers, x, packed(packing, packing), UNRELATED, nn.Identity())

    def _begun(self, placed: Float[Tensor, "B T D"], segments: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        x = self.embedding_norm(placed + F.embedding(segments, self.segments))
        return residual_stream(dropout(x, self.dropout, self.training), "post")

    def before_projection(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return self.transform_norm(self.activation(self.transform(hidden)))

    def project(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """Logits of the masked pieces."""
        return self.projection(self.before_projection(hidden))

    def pool(self, hidden: Float[Tensor, "B T D"]) -> Float[Tensor, "B D"]:
        """One vector for the sequence, from the first piece."""
        return torch.tanh(self.pooler(hidden[:, 0]))

    def follows(self, hidden: Float[Tensor, "B T D"]) -> Float[Tensor, "B 2"]:
        """Logits of next-sentence prediction: the second text follows the first, or does not."""
        pooled = dropout(self.pool(hidden), self.dropout, self.training)
        return self.next_sentence(pooled)
