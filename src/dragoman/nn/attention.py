"""Attention: values weighted by how queries match keys.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V          Vaswani et al. 2017, equation 1

    x ─ query_key_value ─ split into heads ─ attend ─ join heads ─ out       self-attention
    x ─ query ─────┐
    memory ─ key_value ─ attend ─ join heads ─ out                          cross-attention

`attend` and `weigh` are the only places where weights come into being. While a tap is open (see `open_tap`),
`attend` takes the explicit path and shows them; otherwise the fused kernel runs. A test holds the two equal.
Scores of other kinds (`nn/scores.py`) go through `weigh`, which is explicit always.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch.nn.functional as F
from torch import nn

from dragoman.nn.init import xavier_linear
from dragoman.nn.mask import EVERYTHING, Mask
from dragoman.nn.state import KeyValueCache
from dragoman.shapes import Float, Tensor

Tap = Callable[[nn.Module, Float[Tensor, "B H Q M"]], None]
_taps: list[Tap] = []


@contextmanager
def open_tap(tap: Tap) -> Iterator[None]:
    """Call `tap(module, weights)` for every attention computed inside the `with` block."""
    _taps.append(tap)
    try:
        yield
    finally:
        _taps.remove(tap)


def attend(
    owner: nn.Module,
    query: Float[Tensor, "B H Q E"],
    key: Float[Tensor, "B H M E"],
    value: Float[Tensor, "B H M W"],
    mask: Mask = EVERYTHING,
    dropout: float = 0.0,
) -> Float[Tensor, "B H Q W"]:
    """Scaled dot-product attention. `owner` tells a tap whose weights it is shown."""
    if _taps:
        return _attend_explicitly(owner, query, key, value, mask, dropout)
    queries, memory = query.size(2), key.size(2)
    if mask.causal and mask.visible is None and queries == memory:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
    dense = mask.dense(queries, memory, query.device)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=dense, dropout_p=dropout)


def _attend_explicitly(
    owner: nn.Module,
    query: Float[Tensor, "B H Q E"],
    key: Float[Tensor, "B H M E"],
    value: Float[Tensor, "B H M W"],
    mask: Mask,
    dropout: float,
) -> Float[Tensor, "B H Q W"]:
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # B H Q M
    return weigh(owner, scores, value, mask, dropout)


def weigh(
    owner: nn.Module,
    scores: Float[Tensor, "B H Q M"],
    value: Float[Tensor, "B H M W"],
    mask: Mask = EVERYTHING,
    dropout: float = 0.0,
) -> Float[Tensor, "B H Q W"]:
    """Values weighted by a softmax of any scores over the positions that may be looked at."""
    dense = mask.dense(scores.size(2), scores.size(3), scores.device)
    if dense is not None:
        scores = scores.masked_fill(~dense, -math.inf)
    weights = scores.softmax(dim=-1)
    for tap in _taps:
        tap(owner, weights)
    return F.dropout(weights, dropout) @ value


def split_heads(x: Float[Tensor, "B T HE"], num_heads: int) -> Float[Tensor, "B H T E"]:
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def join_heads(x: Float[Tensor, "B H T E"]) -> Float[Tensor, "B T HE"]:
    return x.transpose(1, 2).flatten(2)


class SelfAttention(nn.Module):
    """Queries, keys and values from one sequence; one matrix product makes all three."""

    def __init__(
        self, model_dim: int, num_heads: int, head_dim: int, value_dim: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.num_heads, self.head_dim, self.value_dim, self.dropout = num_heads, head_dim, value_dim, dropout
        widths = [num_heads * head_dim, num_heads * head_dim, num_heads * value_dim]
        self.query_key_value = xavier_linear(model_dim, widths)
        self.out = xavier_linear(num_heads * value_dim, [model_dim])

    def forward(self, x: Float[Tensor, "B T D"], mask: Mask) -> Float[Tensor, "B T D"]:
        query, key, value = self._project(x)
        dropout = self.dropout if self.training else 0.0
        return self.out(join_heads(attend(self, query, key, value, mask, dropout)))

    def start(self, rows: int, like: Tensor) -> KeyValueCache:
        return KeyValueCache.empty(rows, self.num_heads, self.head_dim, self.value_dim, like)

    def step(
        self, x: Float[Tensor, "N 1 D"], cache: KeyValueCache
    ) -> tuple[Float[Tensor, "N 1 D"], KeyValueCache]:
        """One further position: its key and value join the cache, and it looks at all of them."""
        query, key, value = self._project(x)
        cache = cache.append(key, value)
        return self.out(join_heads(attend(self, query, cache.key, cache.value))), cache

    def _project(
        self, x: Float[Tensor, "B T D"]
    ) -> tuple[Float[Tensor, "B H T E"], Float[Tensor, "B H T E"], Float[Tensor, "B H T W"]]:
        key_width, value_width = self.num_heads * self.head_dim, self.num_heads * self.value_dim
        query, key, value = self.query_key_value(x).split([key_width, key_width, value_width], dim=-1)
        return (
            split_heads(query, self.num_heads),
            split_heads(key, self.num_heads),
            split_heads(value, self.num_heads),
        )


class CrossAttention(nn.Module):
    """Queries from one sequence, keys and values from another, which are projected once."""

    looks_at_memory = True
    """Its weights go over source positions: see `open_tap`."""

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        head_dim: int,
        value_dim: int,
        dropout: float,
        memory_dim: int,
    ) -> None:
        super().__init__()
        self.num_heads, self.head_dim, self.value_dim, self.dropout = num_heads, head_dim, value_dim, dropout
        self.query = xavier_linear(model_dim, [num_heads * head_dim])
        self.key_value = xavier_linear(memory_dim, [num_heads * head_dim, num_heads * value_dim])
        self.out = xavier_linear(num_heads * value_dim, [model_dim])

    def project_memory(
        self, memory: Float[Tensor, "B S D"]
    ) -> tuple[Float[Tensor, "B H S E"], Float[Tensor, "B H S W"]]:
        """The keys and values of a memory, computed once per sentence."""
        widths = [self.num_heads * self.head_dim, self.num_heads * self.value_dim]
        key, value = self.key_value(memory).split(widths, dim=-1)
        return split_heads(key, self.num_heads), split_heads(value, self.num_heads)

    def forward(
        self,
        x: Float[Tensor, "B Q D"],
        key: Float[Tensor, "B H S E"],
        value: Float[Tensor, "B H S W"],
        mask: Mask,
    ) -> Float[Tensor, "B Q D"]:
        query = split_heads(self.query(x), self.num_heads)
        dropout = self.dropout if self.training else 0.0
        return self.out(join_heads(attend(self, query, key, value, mask, dropout)))
