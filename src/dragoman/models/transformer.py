"""The Transformer of «Attention Is All You Need» (Vaswani et al. 2017, figure 1), and what was changed since.

    source ─ embed·√D ─ + positions ─ [ self-attention ─ feed-forward ]×L ─▶ memory
                                                                                │
    target ─ embed·√D ─ + positions ─ [ masked self-attention ─ cross-attention ─ feed-forward ]×L ─▶ hidden

Positions are added once, or act inside every self-attention (`nn/positions.py`). The defaults are those of
the paper. `nn/layer.py` has the layers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, cast

from torch import nn

from dragoman.config import check_not_negative, check_shares, check_sizes
from dragoman.errors import UserError
from dragoman.models.abilities import Abilities
from dragoman.models.base import EncoderDecoder, Memory, Tying, Vocab, join
from dragoman.nn import positions as places
from dragoman.nn.attention import CrossAttention, SelfAttention
from dragoman.nn.average_attention import AverageAttention
from dragoman.nn.dropout import dropout
from dragoman.nn.layer import (
    Activation,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    LayerState,
    all_layers,
    decode_through,
    read_through,
)
from dragoman.nn.linear import TokenEmbedding
from dragoman.nn.mask import CAUSAL, Mask, Packing, packed, padding
from dragoman.nn.norm import NoResidual, NormKind, NormPlace, Residual, make_norm, residual_stream
from dragoman.nn.state import Moves, rows_of
from dragoman.shapes import Bool, Float, Int, Tensor
from dragoman.text.tokenizer import PAD_ID

PositionKind = Literal["sinusoidal", "learned", "t5", "shaw", "rotary", "none"]
DecoderSelf = Literal["attention", "average"]
Relations = places.BucketedBias | places.Rotary | places.ClippedDistances | places.NoRelation


@dataclass(frozen=True)
class TransformerConfig:
    num_layers: int = 6
    num_decoder_layers: int | None = None  # as many as in the encoder
    model_dim: int = 512
    num_heads: int = 8
    head_dim: int | None = None  # d_k; model_dim / num_heads
    value_dim: int | None = None  # d_v; the same as head_dim
    ff_dim: int = 2048
    dropout: float = 0.1
    attention_dropout: float = 0.0
    ff_dropout: float = 0.0
    norm: NormPlace = "post"
    norm_kind: NormKind = "layer"
    norm_eps: float = 1e-5
    residual: bool = True  # a connection around every sublayer
    activation: Activation = "relu"
    gated: bool = False
    bias: bool = True  # in the projections of attention and feed-forward
    decoder_self: DecoderSelf = "attention"
    causal: bool = True  # false: in training the decoder sees the words that it has to predict
    scale_attention: bool = True
    positions: PositionKind = "sinusoidal"
    position_layout: places.SinusoidLayout = "interleaved"  # sinusoidal, rotary
    position_base: float = 10000.0  # sinusoidal, rotary
    max_positions: int = 512  # learned
    relative_buckets: int = 32  # t5
    relative_max_distance: int = 128  # t5
    relative_window: int = 16  # shaw
    scale_embeddings: bool = True
    norm_embeddings: bool = False  # a norm on what the first layer reads, as BART has it
    tie_embeddings: Tying = True  # one matrix for projection, target and, with a joint vocabulary, source
    scale_output: bool = False  # what is projected, by 1/√D, as the first T5 has it
    output_bias: bool = False
    silent_bos: bool = False  # <s> takes no part in the softmax
    copy: bool = False  # pieces of the source can be copied (`nn/copying.py`)

    def __post_init__(self) -> None:
        check_sizes(
            self,
            depths=["num_layers", "num_decoder_layers"],
            widths=["model_dim", "num_heads", "head_dim", "value_dim", "ff_dim", "relative_window"],
            places=["max_positions", "relative_buckets", "relative_max_distance"],
        )
        check_not_negative(self, "norm_eps")
        check_shares(self, "dropout", "attention_dropout", "ff_dropout")
        if self.head_dim is None and self.model_dim % self.num_heads:
            raise UserError(
                f"num_heads: model_dim {self.model_dim} cannot be divided into {self.num_heads} heads; "
                "choose another number or set head_dim"
            )
        self._check_positions()

    def _check_positions(self) -> None:
        if not 0 < self.position_base < math.inf:
            raise UserError(f"position_base: expected a number above 0, found {self.position_base}")
        if self.relative_buckets < 4 or self.relative_buckets % 2:
            raise UserError(
                f"relative_buckets: expected an even number of at least 4, found {self.relative_buckets}"
            )
        if self.relative_max_distance <= self.relative_buckets // 2:
            raise UserError(
                f"relative_max_distance: expected more than half of the {self.relative_buckets} "
                f"relative_buckets, found {self.relative_max_distance}"
            )
        if self.positions == "rotary" and self.heads[1] % 2:
            raise UserError(
                f"positions: rotary turns pairs of numbers, and a head of width {self.heads[1]} cannot be "
                "divided into pairs; set head_dim to an even number"
            )
        if self.decoder_self == "average" and not self.causal:
            raise UserError("causal: average is a mean of earlier positions; choose decoder_self attention")
        if self.decoder_self == "average" and self.positions in ("t5", "shaw", "rotary"):
            raise UserError(
                f"decoder_self: average has no scores that positions {self.positions} could change; "
                "choose sinusoidal, learned or none"
            )

    @property
    def abilities(self) -> Abilities:
        """Batches can be packed where nothing but attention looks at other positions. Packed gradients of
        Shaw's vectors differ by a thousandth on a GPU, so these are padded."""
        packs = self.decoder_self == "attention" and self.positions != "shaw"
        max_length = self.max_positions if self.positions == "learned" else None
        return Abilities(packs=packs, copies=self.copy, max_length=max_length)

    @property
    def decoder_layers(self) -> int:
        return self.num_decoder_layers or self.num_layers

    @property
    def heads(self) -> tuple[int, int, int]:
        """H, d_k, d_v."""
        head_dim = self.head_dim or self.model_dim // self.num_heads
        return self.num_heads, head_dim, self.value_dim or head_dim


def transformer(config: TransformerConfig, vocab: Vocab) -> EncoderDecoder:
    """Assemble the whole model."""
    return join(vocab, TransformerEncoder, config, TransformerDecoder, config)


class TransformerEncoder(nn.Module):
    def __init__(self, config: TransformerConfig, embedding: TokenEmbedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.positions = _positions(config)
        layers = nn.ModuleList(_encoder_layer(config) for _ in range(config.num_layers))
        self.layers = cast(Sequence[EncoderLayer], layers)
        self.relations = _relations(config, causal=False)
        self.norm_place: NormPlace = config.norm
        self.embedding_norm, self.final_norm = _outer_norms(config)
        self.dropout = config.dropout

    def forward(self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> Memory:
        x = self._embedded(src_ids)
        relation = self.relations(x.size(1), x.size(1), like=x)
        return Memory(self._read(x, padding(src_mask), relation), src_mask)

    def read_layers(
        self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]
    ) -> list[Float[Tensor, "B S D"]]:
        x = self._embedded(src_ids)
        relation = self.relations(x.size(1), x.size(1), like=x)
        return all_layers(self.layers, x, padding(src_mask), relation, self.final_norm)

    def packed(self, src_ids: Int[Tensor, "1 N"], packing: Packing) -> Float[Tensor, "1 N D"]:
        """Encode packed sequences."""
        x = self.embedding_norm(self.positions.packed(self.embedding(src_ids), packing))
        x = residual_stream(dropout(x, self.dropout, self.training), self.norm_place)
        return self._read(x, packed(packing, packing), self.relations.packed(packing, like=x))

    def _embedded(self, src_ids: Int[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        x = self.embedding_norm(self.positions(self.embedding(src_ids)))
        return dropout(x, self.dropout, self.training)

    def _read(
        self, x: Float[Tensor, "B S D"], mask: Mask, relation: places.Relation
    ) -> Float[Tensor, "B S D"]:
        return read_through(self.layers, x, mask, relation, self.final_norm)


class TransformerDecoder(nn.Module):
    def __init__(self, config: TransformerConfig, embedding: TokenEmbedding, memory_dim: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.positions = _positions(config)
        layers = nn.ModuleList(_decoder_layer(config, memory_dim) for _ in range(config.decoder_layers))
        self.layers = cast(Sequence[DecoderLayer], layers)
        self.causal, self.relations = config.causal, _relations(config, config.causal)
        self.norm_place: NormPlace = config.norm
        self.embedding_norm, self.final_norm = _outer_norms(config)
        self.output_scale = config.model_dim**-0.5 if config.scale_output else None
        self.dropout = config.dropout

    def forward(self, tgt_in: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T D"]:
        x = self.embedding_norm(self.positions(self.embedding(tgt_in)))
        x = dropout(x, self.dropout, self.training)
        mask, relation = padding(memory.mask), self.relations(x.size(1), x.size(1), like=x)
        self_mask = CAUSAL if self.causal else padding(tgt_in != PAD_ID)
        hidden = decode_through(self.layers, x, memory.hidden, mask, relation, self.final_norm, self_mask)
        return self._scaled(hidden)

    def packed(
        self,
        tgt_in: Int[Tensor, "1 N"],
        packing: Packing,
        memory: Float[Tensor, "1 M G"],
        memory_packing: Packing,
    ) -> Float[Tensor, "1 N D"]:
        """`forward` for sequences that lie one after another."""
        x = self.embedding_norm(self.positions.packed(self.embedding(tgt_in), packing))
        x = residual_stream(dropout(x, self.dropout, self.training), self.norm_place)
        mask, self_mask = packed(packing, memory_packing), packed(packing, packing, self.causal)
        relation = self.relations.packed(packing, like=x)
        hidden = decode_through(self.layers, x, memory, mask, relation, self.final_norm, self_mask)
        return self._scaled(hidden)

    def finish(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """The output of the last layer, as it is projected."""
        return self._scaled(self.final_norm(x))

    def _scaled(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        return x if self.output_scale is None else x * self.output_scale

    def start(self, memory: Memory) -> "TransformerState":
        layers = tuple(layer.start(memory.hidden) for layer in self.layers)
        return TransformerState(layers, memory.mask, beams=1, position=0)

    def step(
        self, last_ids: Int[Tensor, "N"], state: "TransformerState"
    ) -> tuple[Float[Tensor, "N D"], "TransformerState"]:
        x = self.positions(self.embedding(last_ids[:, None]), start=state.position)  # N 1 D
        x = dropout(self.embedding_norm(x), self.dropout, self.training)
        mask, relation = padding(state.memory_mask), self.relations(1, state.position + 1, like=x)
        layers = []
        for layer, layer_state in zip(self.layers, state.layers, strict=True):
            x, layer_state = layer.step(x, layer_state, mask, state.beams, relation)
            layers.append(layer_state)
        hidden = self.finish(x)[:, 0]
        return hidden, replace(state, layers=tuple(layers), position=state.position + 1)


@dataclass(frozen=True)
class TransformerState:
    layers: tuple[LayerState, ...]
    memory_mask: Bool[Tensor, "B S"]
    beams: int
    position: int

    def expand(self, k: int) -> Self:
        layers = tuple(layer.expand(k) for layer in self.layers)
        return replace(self, layers=layers, beams=self.beams * k)

    def select(self, order: Int[Tensor, "N"]) -> Self:
        moves = Moves.of(order)
        return replace(self, layers=tuple(layer.move(moves) for layer in self.layers))

    def keep(self, sentences: Int[Tensor, "A"]) -> Self:
        rows = rows_of(sentences, self.beams)
        layers = tuple(layer.keep(sentences, rows) for layer in self.layers)
        return replace(self, layers=layers, memory_mask=self.memory_mask[sentences])


def _encoder_layer(config: TransformerConfig) -> EncoderLayer:
    return EncoderLayer(
        _self_attention(config, causal=False), _feedforward(config), _residual(config), _residual(config)
    )


def _decoder_layer(config: TransformerConfig, memory_dim: int) -> DecoderLayer:
    return DecoderLayer(
        AverageAttention(config.model_dim, _feedforward(config), config.bias)
        if config.decoder_self == "average"
        else _self_attention(config, config.causal),
        CrossAttention(
            config.model_dim,
            *config.heads,
            config.attention_dropout,
            memory_dim,
            bias=config.bias,
            scaled=config.scale_attention,
        ),
        _feedforward(config),
        _residual(config),
        _residual(config),
        _residual(config),
    )


def _self_attention(config: TransformerConfig, causal: bool) -> SelfAttention:
    distances = None
    if config.positions == "shaw":
        distances = places.DistanceVectors(config.relative_window, *config.heads[1:], causal)
    return SelfAttention(
        config.model_dim,
        *config.heads,
        config.attention_dropout,
        bias=config.bias,
        scaled=config.scale_attention,
        distances=distances,
    )


def _feedforward(config: TransformerConfig) -> FeedForward:
    return FeedForward(
        config.model_dim, config.ff_dim, config.ff_dropout, config.activation, config.gated, config.bias
    )


def _positions(
    config: TransformerConfig,
) -> places.SinusoidalPositions | places.LearnedPositions | places.NoPositions:
    if config.positions == "sinusoidal":
        return places.SinusoidalPositions(config.model_dim, config.position_layout, config.position_base)
    if config.positions == "learned":
        return places.LearnedPositions(config.max_positions, config.model_dim)
    return places.NoPositions()


def _relations(config: TransformerConfig, causal: bool) -> Relations:
    if config.positions == "t5":
        buckets, farthest = config.relative_buckets, config.relative_max_distance
        return places.BucketedBias(config.num_heads, config.model_dim, buckets, farthest, causal)
    if config.positions == "rotary":
        return places.Rotary(config.heads[1], config.position_base, config.position_layout)
    if config.positions == "shaw":
        return places.ClippedDistances(config.relative_window, causal)
    return places.NoRelation()


def _residual(config: TransformerConfig) -> Residual:
    kind = Residual if config.residual else NoResidual
    return kind(config.model_dim, config.dropout, config.norm, config.norm_eps, config.norm_kind)


def _outer_norms(config: TransformerConfig) -> list[nn.Module]:
    """One on the embeddings, if asked for, and one at the end, where pre-norm leaves the sum bare."""

    def norm(wanted: bool) -> nn.Module:
        return make_norm(config.model_dim, config.norm_kind, config.norm_eps) if wanted else nn.Identity()

    return [norm(config.norm_embeddings), norm(config.norm == "pre")]
