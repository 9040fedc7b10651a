"""The Transformer of «Attention Is All You Need» (Vaswani et al. 2017, figure 1).

    source ─ embed·√D ─ + positions ─ [ self-attention ─ feed-forward ]×L ─▶ memory
                                                                                │
    target ─ embed·√D ─ + positions ─ [ masked self-attention ─ cross-attention ─ feed-forward ]×L ─▶ hidden

Every sublayer stands in a residual connection with its layer norm (`nn/norm.py` draws both orders).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

import torch.nn.functional as F
from torch import nn

from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder, Memory, Vocab, join
from dragoman.nn.attention import CrossAttention, SelfAttention
from dragoman.nn.embedding import TokenEmbedding
from dragoman.nn.feedforward import Activation, FeedForward
from dragoman.nn.mask import CAUSAL, Mask, padding
from dragoman.nn.norm import NormPlace, Residual
from dragoman.nn.position import SinusoidalPositions, SinusoidLayout
from dragoman.nn.state import KeyValueCache, Moves, rows_of
from dragoman.shapes import Bool, Float, Int, Tensor


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
    norm_eps: float = 1e-5
    activation: Activation = "relu"
    position_layout: SinusoidLayout = "interleaved"
    scale_embeddings: bool = True
    tie_embeddings: bool = True  # one matrix for projection, target and, with a joint vocabulary, source
    output_bias: bool = False

    def __post_init__(self) -> None:
        positive = ("num_layers", "model_dim", "num_heads", "ff_dim")
        for name in (*positive, "num_decoder_layers", "head_dim", "value_dim"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name}: expected a whole number of at least 1, found {value}")
        for name in ("dropout", "attention_dropout", "ff_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name}: expected a share from 0 up to 1, found {getattr(self, name)}")
        if self.head_dim is None and self.model_dim % self.num_heads:
            raise UserError(
                f"num_heads: model_dim {self.model_dim} cannot be divided into {self.num_heads} heads; "
                "choose another number or set head_dim"
            )

    @property
    def heads(self) -> tuple[int, int, int]:
        """H, d_k, d_v."""
        head_dim = self.head_dim or self.model_dim // self.num_heads
        return self.num_heads, head_dim, self.value_dim or head_dim


def transformer(config: TransformerConfig, vocab: Vocab) -> EncoderDecoder:
    """Assemble the whole model."""
    return join(vocab, TransformerEncoder, config, TransformerDecoder, config)


class EncoderLayer(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config.model_dim, *config.heads, config.attention_dropout)
        self.feedforward = FeedForward(config.model_dim, config.ff_dim, config.ff_dropout, config.activation)
        self.self_residual = _residual(config)
        self.ff_residual = _residual(config)

    def forward(self, x: Float[Tensor, "B S D"], mask: Mask) -> Float[Tensor, "B S D"]:
        x = self.self_residual.after(x, self.self_attention(self.self_residual.before(x), mask))
        return self.ff_residual.after(x, self.feedforward(self.ff_residual.before(x)))


class DecoderLayer(nn.Module):
    def __init__(self, config: TransformerConfig, memory_dim: int) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config.model_dim, *config.heads, config.attention_dropout)
        self.cross_attention = CrossAttention(
            config.model_dim, *config.heads, config.attention_dropout, memory_dim
        )
        self.feedforward = FeedForward(config.model_dim, config.ff_dim, config.ff_dropout, config.activation)
        self.self_residual = _residual(config)
        self.cross_residual = _residual(config)
        self.ff_residual = _residual(config)

    def forward(
        self, x: Float[Tensor, "B T D"], memory: Float[Tensor, "B S D"], memory_mask: Mask
    ) -> Float[Tensor, "B T D"]:
        x = self.self_residual.after(x, self.self_attention(self.self_residual.before(x), CAUSAL))
        key, value = self.cross_attention.project_memory(memory)
        cross = self.cross_attention(self.cross_residual.before(x), key, value, memory_mask)
        x = self.cross_residual.after(x, cross)
        return self.ff_residual.after(x, self.feedforward(self.ff_residual.before(x)))

    def start(self, memory: Float[Tensor, "B S D"]) -> "LayerState":
        key, value = self.cross_attention.project_memory(memory)
        return LayerState(key, value, self.self_attention.start(len(memory), like=key))

    def step(
        self, x: Float[Tensor, "N 1 D"], state: "LayerState", memory_mask: Mask, beams: int
    ) -> tuple[Float[Tensor, "N 1 D"], "LayerState"]:
        attended, cache = self.self_attention.step(self.self_residual.before(x), state.cache)
        x = self.self_residual.after(x, attended)
        # The beams of a sentence ask its one memory as if they were so many positions: B K D, not N 1 D.
        query = self.cross_residual.before(x).view(-1, beams, x.size(-1))
        cross = self.cross_attention(query, state.memory_key, state.memory_value, memory_mask)
        x = self.cross_residual.after(x, cross.reshape(x.shape))
        x = self.ff_residual.after(x, self.feedforward(self.ff_residual.before(x)))
        return x, replace(state, cache=cache)


class TransformerEncoder(nn.Module):
    def __init__(self, config: TransformerConfig, embedding: TokenEmbedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.positions = SinusoidalPositions(config.model_dim, config.position_layout)
        layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_layers))
        self.layers = cast(Sequence[EncoderLayer], layers)
        self.final_norm = _final_norm(config)
        self.dropout = config.dropout

    def forward(self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> Memory:
        x = F.dropout(self.positions(self.embedding(src_ids)), self.dropout, self.training)
        mask = padding(src_mask)
        for layer in self.layers:
            x = layer(x, mask)
        return Memory(self.final_norm(x), src_mask)


class TransformerDecoder(nn.Module):
    def __init__(self, config: TransformerConfig, embedding: TokenEmbedding, memory_dim: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.positions = SinusoidalPositions(config.model_dim, config.position_layout)
        num_layers = config.num_decoder_layers or config.num_layers
        layers = nn.ModuleList(DecoderLayer(config, memory_dim) for _ in range(num_layers))
        self.layers = cast(Sequence[DecoderLayer], layers)
        self.final_norm = _final_norm(config)
        self.dropout = config.dropout

    def forward(self, tgt_in: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T D"]:
        x = F.dropout(self.positions(self.embedding(tgt_in)), self.dropout, self.training)
        mask = padding(memory.mask)
        for layer in self.layers:
            x = layer(x, memory.hidden, mask)
        return self.final_norm(x)

    def start(self, memory: Memory) -> "TransformerState":
        layers = tuple(layer.start(memory.hidden) for layer in self.layers)
        return TransformerState(layers, memory.mask, beams=1, position=0)

    def step(
        self, last_ids: Int[Tensor, "N"], state: "TransformerState"
    ) -> tuple[Float[Tensor, "N D"], "TransformerState"]:
        x = self.positions(self.embedding(last_ids[:, None]), start=state.position)  # N 1 D
        x = F.dropout(x, self.dropout, self.training)
        mask = padding(state.memory_mask)
        layers = []
        for layer, layer_state in zip(self.layers, state.layers, strict=True):
            x, layer_state = layer.step(x, layer_state, mask, state.beams)
            layers.append(layer_state)
        hidden = self.final_norm(x)[:, 0]
        return hidden, replace(state, layers=tuple(layers), position=state.position + 1)


@dataclass(frozen=True)
class LayerState:
    """One layer: the projected memory, which all beams of a sentence share, and the part that grows."""

    memory_key: Float[Tensor, "B H S E"]
    memory_value: Float[Tensor, "B H S W"]
    cache: KeyValueCache


@dataclass(frozen=True)
class TransformerState:
    layers: tuple[LayerState, ...]
    memory_mask: Bool[Tensor, "B S"]
    beams: int
    position: int

    def expand(self, k: int) -> Self:
        layers = tuple(replace(layer, cache=layer.cache.expand(k)) for layer in self.layers)
        return replace(self, layers=layers, beams=self.beams * k)

    def select(self, order: Int[Tensor, "N"]) -> Self:
        moves = Moves.of(order)
        layers = tuple(replace(layer, cache=layer.cache.move(moves)) for layer in self.layers)
        return replace(self, layers=layers)

    def keep(self, sentences: Int[Tensor, "A"]) -> Self:
        rows = rows_of(sentences, self.beams)
        layers = tuple(
            LayerState(
                layer.memory_key[sentences], layer.memory_value[sentences], layer.cache.keep_rows(rows)
            )
            for layer in self.layers
        )
        return replace(self, layers=layers, memory_mask=self.memory_mask[sentences])


def _residual(config: TransformerConfig) -> Residual:
    return Residual(config.model_dim, config.dropout, config.norm, config.norm_eps)


def _final_norm(config: TransformerConfig) -> nn.Module:
    """Post-norm ends every sublayer with a norm; pre-norm leaves the sum bare and needs one at the end."""
    return nn.LayerNorm(config.model_dim, eps=config.norm_eps) if config.norm == "pre" else nn.Identity()
