"""The layers of a Transformer (Vaswani et al. 2017, figure 1), assembled from given sublayers.

    x ─ self-attention ─ feed-forward ─▶                          encoder, or with a causal mask a decoder
    x ─ masked self-attention ─ cross-attention ─ feed-forward ─▶  decoder

Every sublayer is in a residual connection with a norm; `nn/norm.py` draws both orders. The feed-forward
network is the same at every position:

    FFN(x) = f(x W₁ + b₁) W₂ + b₂                       Vaswani et al. 2017, equation 2
    gated:   (f(x W₁ + b₁) ⊙ (x V + c)) W₂ + b₂         Shazeer 2020, equations 5 and 6

With a gate, sigmoid makes GLU, relu ReGLU, gelu GEGLU and silu SwiGLU.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol, Self

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.nn.attention import CrossAttention, SelfAttention
from dragoman.nn.dropout import dropout
from dragoman.nn.kernel_choice import FEEDFORWARD, choose_kernel
from dragoman.nn.linear import xavier_linear
from dragoman.nn.mask import CAUSAL, Mask
from dragoman.nn.norm import Residual, in_half
from dragoman.nn.positions import Relation
from dragoman.nn.state import KeyValueCache, Moves
from dragoman.shapes import Float, Int, Tensor

Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "sigmoid"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
}
_FUSABLE = ("relu", "gelu", "gelu_tanh")


class FeedForward(nn.Module):
    """`widen` computes W₁ and, if gated, V in one matrix product."""

    def __init__(
        self,
        model_dim: int,
        ff_dim: int,
        dropout: float = 0.0,
        activation: Activation = "relu",
        gated: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.widen = xavier_linear(model_dim, [ff_dim, ff_dim] if gated else [ff_dim], bias)
        self.narrow = xavier_linear(ff_dim, [model_dim], bias)
        self.activation = ACTIVATIONS[activation]
        self.dropout, self.gated = dropout, gated
        self.fusable = activation if bias and not gated and activation in _FUSABLE else None
        """The activation, where one kernel can compute both layers."""

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return choose_kernel(FEEDFORWARD, self, x).run(self, x)

    def two_layers(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        inner = self.widen(x)  # *B F, or 2F with a gate
        if self.gated:
            opened, passed = inner.chunk(2, dim=-1)
            inner = self.activation(opened) * passed  # *B F
        else:
            inner = self.activation(inner)
        return self.narrow(dropout(inner, self.dropout, self.training) if self.dropout else inner)


class AttentionPast(Protocol):
    """The state of a self-attention for the next position: keys and values, or a running sum."""

    def expand(self, k: int) -> Self: ...
    def move(self, moves: Moves) -> Self: ...
    def keep_rows(self, rows: Int[Tensor, "R"]) -> Self: ...


class LooksBack(Protocol):
    """Self-attention of a decoder, or a replacement for it."""

    def __call__(
        self, x: Float[Tensor, "B T D"], mask: Mask, relation: Relation
    ) -> Float[Tensor, "B T D"]: ...
    def start(self, rows: int, like: Tensor) -> AttentionPast: ...
    def step(
        self, x: Float[Tensor, "N 1 D"], past: Any, relation: Relation
    ) -> tuple[Float[Tensor, "N 1 D"], AttentionPast]: ...


class EncoderLayer(nn.Module):
    def __init__(
        self,
        self_attention: SelfAttention,
        feedforward: FeedForward,
        self_residual: Residual,
        ff_residual: Residual,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.feedforward = feedforward
        self.self_residual = self_residual
        self.ff_residual = ff_residual

    def forward(self, x: Float[Tensor, "B S D"], mask: Mask, relation: Relation) -> Float[Tensor, "B S D"]:
        x = self.self_residual.after(x, self.self_attention(self.self_residual.before(x), mask, relation))
        return self.ff_residual.after(x, self.feedforward(self.ff_residual.before(x)))

    def forward_fused(
        self,
        x: Float[Tensor, "B S D"],
        normed: Float[Tensor, "B S D"],
        mask: Mask,
        relation: Relation,
        following: nn.Module,
    ) -> tuple[Float[Tensor, "B S D"], Float[Tensor, "B S D"]]:
        """`forward` of a pre-norm layer whose first norm has been applied already. It applies the norm of the
        next layer."""
        attended = self.self_attention(normed, mask, relation)
        x, normed = self.self_residual.after_and_norm(x, attended, self.ff_residual.norm)
        return self.ff_residual.after_and_norm(x, self.feedforward(normed), following)

    def step(
        self, x: Float[Tensor, "N Q D"], past: KeyValueCache, mask: Mask, relation: Relation
    ) -> tuple[Float[Tensor, "N Q D"], KeyValueCache]:
        """Further positions of a decoder without a memory."""
        attended, past = self.self_attention.step(self.self_residual.before(x), past, relation, mask)
        x = self.self_residual.after(x, attended)
        return self.ff_residual.after(x, self.feedforward(self.ff_residual.before(x))), past


def read_through(
    layers: Iterable[EncoderLayer],
    x: Float[Tensor, "B S D"],
    mask: Mask,
    relation: Relation,
    final_norm: nn.Module,
) -> Float[Tensor, "B S D"]:
    """One layer after another, and the final norm. With pre-norm on a GPU, one kernel adds a sublayer and
    applies the next norm, across the borders of layers:

        x ─ norm ─ attention ─ [ + ─ norm ] ─ feed-forward ─ [ + ─ norm of the next layer ] ─ attention ─ …
    """
    layers = list(layers)
    first = layers[0].self_residual
    if not first.fuses_next_norm(x):
        for layer in layers:
            x = layer(x, mask, relation)
        return final_norm(x)
    normed = in_half(first.norm(x))
    norms = [*(layer.self_residual.norm for layer in layers[1:]), final_norm]
    for layer, following in zip(layers, norms, strict=True):
        x, normed = layer.forward_fused(x, normed, mask, relation, following)
    return normed


def decode_through(
    layers: Iterable["DecoderLayer"],
    x: Float[Tensor, "B T D"],
    memory: Float[Tensor, "B S G"],
    memory_mask: Mask,
    relation: Relation,
    final_norm: nn.Module,
    self_mask: Mask = CAUSAL,
) -> Float[Tensor, "B T D"]:
    """`read_through` for layers with attention to a memory."""
    layers = list(layers)
    first = layers[0].self_residual
    if not first.fuses_next_norm(x):
        for layer in layers:
            x = layer(x, memory, memory_mask, relation, self_mask)
        return final_norm(x)
    normed = in_half(first.norm(x))
    norms = [*(layer.self_residual.norm for layer in layers[1:]), final_norm]
    for layer, following in zip(layers, norms, strict=True):
        x, normed = layer.forward_fused(x, normed, memory, memory_mask, relation, self_mask, following)
    return normed


def all_layers(
    layers: Iterable[EncoderLayer],
    x: Float[Tensor, "B S D"],
    mask: Mask,
    relation: Relation,
    final_norm: nn.Module | None = None,
) -> list[Float[Tensor, "B S D"]]:
    """The input of the first layer and the output of every layer; the last one after the final norm."""
    found = [x]
    for layer in layers:
        found.append(layer(found[-1], mask, relation))
    return found if final_norm is None else [*found[:-1], final_norm(found[-1])]


@dataclass(frozen=True)
class LayerState:
    """State of one layer: the projected memory, shared by all beams of a sentence, and the past."""

    memory_key: Float[Tensor, "B H S E"]
    memory_value: Float[Tensor, "B H S W"]
    past: AttentionPast

    def expand(self, k: int) -> "LayerState":
        return replace(self, past=self.past.expand(k))

    def move(self, moves: Moves) -> "LayerState":
        return replace(self, past=self.past.move(moves))

    def keep(self, sentences: Int[Tensor, "A"], rows: Int[Tensor, "R"]) -> "LayerState":
        key, value = self.memory_key[sentences], self.memory_value[sentences]
        return LayerState(key, value, self.past.keep_rows(rows))


class DecoderLayer(nn.Module):
    def __init__(
        self,
        self_attention: LooksBack,
        cross_attention: CrossAttention,
        feedforward: FeedForward,
        self_residual: Residual,
        cross_residual: Residual,
        ff_residual: Residual,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feedforward = feedforward
        self.self_residual = self_residual
        self.cross_residual = cross_residual
        self.ff_residual = ff_residual

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        memory: Float[Tensor, "B S G"],
        memory_mask: Mask,
        relation: Relation,
        self_mask: Mask = CAUSAL,
    ) -> Float[Tensor, "B T D"]:
        attended = self.self_attention(self.self_residual.before(x), self_mask, relation)
        x = self.self_residual.after(x, attended)
        cross = self.cross_attention.read(self.cross_residual.before(x), memory, memory_mask)
        x = self.cross_residual.after(x, cross)
        return self.ff_residual.after(x, self.feedforward(self.ff_residual.before(x)))

    def forward_fused(
        self,
        x: Float[Tensor, "B T D"],
        normed: Float[Tensor, "B T D"],
        memory: Float[Tensor, "B S G"],
        memory_mask: Mask,
        relation: Relation,
        self_mask: Mask,
        following: nn.Module,
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"]]:
        """Fused forward pass; see `EncoderLayer.forward_fused`."""
        attended = self.self_attention(normed, self_mask, relation)
        x, normed = self.self_residual.after_and_norm(x, attended, self.cross_residual.norm)
        cross = self.cross_attention.read(normed, memory, memory_mask)
        x, normed = self.cross_residual.after_and_norm(x, cross, self.ff_residual.norm)
        return self.ff_residual.after_and_norm(x, self.feedforward(normed), following)

    def start(self, memory: Float[Tensor, "B S G"]) -> LayerState:
        key, value = self.cross_attention.project_memory(memory)
        return LayerState(key, value, self.self_attention.start(len(memory), like=key))

    def step(
        self, x: Float[Tensor, "N 1 D"], state: LayerState, memory_mask: Mask, beams: int, relation: Relation
    ) -> tuple[Float[Tensor, "N 1 D"], LayerState]:
        attended, past = self.self_attention.step(self.self_residual.before(x), state.past, relation)
        x = self.self_residual.after(x, attended)
        # The beams of a sentence are queries to its one memory: B K D, not N 1 D.
        query = self.cross_residual.before(x).view(-1, beams, x.size(-1))
        cross = self.cross_attention(query, state.memory_key, state.memory_value, memory_mask)
        x = self.cross_residual.after(x, cross.reshape(x.shape))
        x = self.ff_residual.after(x, self.feedforward(self.ff_residual.before(x)))
        return x, replace(state, past=past)
