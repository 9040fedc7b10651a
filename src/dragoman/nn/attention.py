"""Multi-head attention: values weighted by how queries match keys.

    x ─ query_key_value ─ split into heads ─ attend ─ join heads ─ out       self-attention
    x ─ query ─────┐
    memory ─ key_value ─ attend ─ join heads ─ out                          cross-attention

`nn/kernel_choice.py` chooses how `attend` is computed. Other scores (`nn/scores.py`, Shaw's positions) always
have explicit weights.
"""

import math

from torch import nn

from dragoman.nn.attention_kernels import (
    AttentionCall,
    Heads,
    Projected,
    attention_weights,
    dot_scores,
    join_heads,
    split_heads,
)
from dragoman.nn.kernel_choice import ATTENTION, choose_kernel
from dragoman.nn.linear import xavier_linear
from dragoman.nn.mask import EVERYTHING, Mask
from dragoman.nn.positions import UNRELATED, DistanceVectors, Relation
from dragoman.nn.state import KeyValueCache
from dragoman.shapes import Float, Tensor


def attend(
    owner: nn.Module,
    query: Float[Tensor, "B H Q E"],
    key: Float[Tensor, "B H M E"],
    value: Float[Tensor, "B H M W"],
    mask: Mask = EVERYTHING,
    dropout: float = 0.0,
    bias: Float[Tensor, "#B #H #Q M"] | None = None,
    scaled: bool = True,
) -> Float[Tensor, "B H Q W"]:
    """Dot-product attention of given heads."""
    return run_attention(AttentionCall(owner, Heads(query, key, value), mask, dropout, bias, scaled))


def run_attention(call: AttentionCall) -> Float[Tensor, "B H Q W"]:
    """Run attention with the fastest kernel that supports the call."""
    return choose_kernel(ATTENTION, call).run(call)


def _query_gain(head_dim: int, scaled: bool) -> float:
    """Scale of the initial query weights. Without the division by √d_k they are smaller, so that the initial
    scores are the same."""
    return 1.0 if scaled else 1 / math.sqrt(head_dim)


class SelfAttention(nn.Module):
    """Queries, keys and values from one sequence; one matrix product makes all three.

    Relative positions come as the `Relation` of a call. `distances` are the vectors of this layer for Shaw's
    positions; they need a relation with the row of every pair of positions.
    """

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        head_dim: int,
        value_dim: int,
        dropout: float = 0.0,
        bias: bool = True,
        scaled: bool = True,
        distances: DistanceVectors | None = None,
    ) -> None:
        super().__init__()
        self.num_heads, self.head_dim, self.value_dim, self.dropout = num_heads, head_dim, value_dim, dropout
        self.scaled, self.sizes = scaled, (num_heads, head_dim, value_dim)
        widths = [num_heads * head_dim, num_heads * head_dim, num_heads * value_dim]
        self.query_key_value = xavier_linear(model_dim, widths, bias, _query_gain(head_dim, scaled))
        self.out = xavier_linear(num_heads * value_dim, [model_dim], bias)
        self.distances = distances

    def forward(
        self, x: Float[Tensor, "B T D"], mask: Mask, relation: Relation = UNRELATED
    ) -> Float[Tensor, "B T D"]:
        if relation.bias is None and self.distances is None:
            inputs = Projected(self.query_key_value(x), None, self.sizes, relation.rotation)
            dropout = self.dropout if self.training else 0.0
            call = AttentionCall(self, inputs, mask, dropout, scaled=self.scaled)
            return self.out(join_heads(run_attention(call)))
        return self.out(join_heads(self._attend(*self.project(x, relation), mask, relation)))

    def start(self, rows: int, like: Tensor) -> KeyValueCache:
        return KeyValueCache.empty(rows, self.num_heads, self.head_dim, self.value_dim, like)

    def step(
        self,
        x: Float[Tensor, "N Q D"],
        past: KeyValueCache,
        relation: Relation = UNRELATED,
        mask: Mask = EVERYTHING,
    ) -> tuple[Float[Tensor, "N Q D"], KeyValueCache]:
        """Advance by one or several positions. Their keys and values are appended to the cache, and the mask
        limits what they see."""
        query, key, value = self.project(x, relation)
        past = past.append(key, value)
        return self.out(join_heads(self._attend(query, past.key, past.value, mask, relation))), past

    def _attend(
        self,
        query: Float[Tensor, "B H Q E"],
        key: Float[Tensor, "B H M E"],
        value: Float[Tensor, "B H M W"],
        mask: Mask,
        relation: Relation,
    ) -> Float[Tensor, "B H Q W"]:
        dropout = self.dropout if self.training else 0.0
        if self.distances is None:
            return attend(self, query, key, value, mask, dropout, relation.bias, self.scaled)
        assert relation.clipped is not None, "vectors for distances need distances"
        if mask.packing is not None:
            heads, rows = Heads(query, key, value).in_rows(mask)
            found = self._attend(heads.query, heads.key, heads.value, rows, relation)
            return mask.packing[0].packed(found)
        scores = dot_scores(query, key, self.scaled)
        scaled_query = query / math.sqrt(self.head_dim) if self.scaled else query
        scores = scores + self.distances.scores(scaled_query, relation.clipped)
        weights = attention_weights(self, scores, mask, dropout)
        return weights @ value + self.distances.read(weights, relation.clipped)

    def project(
        self, x: Float[Tensor, "B T D"], relation: Relation = UNRELATED
    ) -> tuple[Float[Tensor, "B H T E"], Float[Tensor, "B H T E"], Float[Tensor, "B H T W"]]:
        """Queries, keys and values, rotated where positions are rotary."""
        heads = Projected(self.query_key_value(x), None, self.sizes, relation.rotation).split()
        return heads.query, heads.key, heads.value


class CrossAttention(nn.Module):
    """Queries from one sequence, keys and values from another, which are projected once."""

    looks_at_memory = True
    """Its weights are over source positions."""

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        head_dim: int,
        value_dim: int,
        dropout: float,
        memory_dim: int,
        bias: bool = True,
        scaled: bool = True,
    ) -> None:
        super().__init__()
        self.num_heads, self.head_dim, self.value_dim, self.dropout = num_heads, head_dim, value_dim, dropout
        self.scaled, self.sizes = scaled, (num_heads, head_dim, value_dim)
        self.query = xavier_linear(model_dim, [num_heads * head_dim], bias, _query_gain(head_dim, scaled))
        self.key_value = xavier_linear(memory_dim, [num_heads * head_dim, num_heads * value_dim], bias)
        self.out = xavier_linear(num_heads * value_dim, [model_dim], bias)

    def project_memory(
        self, memory: Float[Tensor, "B S D"]
    ) -> tuple[Float[Tensor, "B H S E"], Float[Tensor, "B H S W"]]:
        """Keys and values of a memory, computed once per sentence."""
        widths = [self.num_heads * self.head_dim, self.num_heads * self.value_dim]
        key, value = self.key_value(memory).split(widths, dim=-1)
        return split_heads(key, self.num_heads), split_heads(value, self.num_heads)

    def read(
        self, x: Float[Tensor, "B Q D"], memory: Float[Tensor, "B S G"], mask: Mask
    ) -> Float[Tensor, "B Q D"]:
        """Attend to a memory that is read once, without a state."""
        if mask.packing is None:
            return self(x, *self.project_memory(memory), mask)
        inputs = Projected(self.query(x), self.key_value(memory), self.sizes)
        dropout = self.dropout if self.training else 0.0
        call = AttentionCall(self, inputs, mask, dropout, scaled=self.scaled)
        return self.out(join_heads(run_attention(call)))

    def forward(
        self,
        x: Float[Tensor, "B Q D"],
        key: Float[Tensor, "B H S E"],
        value: Float[Tensor, "B H S W"],
        mask: Mask,
    ) -> Float[Tensor, "B Q D"]:
        query = split_heads(self.query(x), self.num_heads)
        dropout = self.dropout if self.training else 0.0
        return self.out(join_heads(attend(self, query, key, value, mask, dropout, scaled=self.scaled)))
