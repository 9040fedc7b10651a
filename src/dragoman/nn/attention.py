"""Attention: values weighted by how queries match keys.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V          Vaswani et al. 2017, equation 1

    x ─ query_key_value ─ split into heads ─ attend ─ join heads ─ out       self-attention
    x ─ query ─────┐
    memory ─ key_value ─ attend ─ join heads ─ out                          cross-attention

`attention_weights` is the only place where weights come into being, and it shows them to every open tap
(`nn/tap.py`). While one is open, `attend` goes through it; otherwise the fused kernel runs, and no weights
exist. A test holds the two equal. Other scores (`nn/scores.py`, Shaw's positions) are always explicit.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.kernels import LONGEST_SEQUENCE, usable
from dragoman.nn.init import xavier_linear
from dragoman.nn.mask import EVERYTHING, Mask
from dragoman.nn.relative import UNRELATED, DistanceVectors, Relation
from dragoman.nn.state import KeyValueCache
from dragoman.nn.tap import taps_on
from dragoman.shapes import Float, Tensor

_WIDEST_FLASH = 256


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
    """Dot-product attention. `owner` tells a tap whose weights it is shown; `bias` is added to the scores;
    `scaled` divides by √d_k before that."""
    if mask.packing is not None:
        assert bias is None, "a packed batch has no pairs of positions to be biased"
        here, there = mask.packing
        if _by_varlen(owner, query, value, mask):
            return _attend_varlen(query, key, value, mask, dropout, scaled)
        padded = here.padded(query), there.padded(key), there.padded(value)
        rows = Mask(there.visible(), mask.causal)
        return here.packed(attend(owner, *padded, rows, dropout, scaled=scaled))
    if bias is not None:
        bias = bias.to(query.dtype)
    if taps_on(owner):
        scores = _dot_scores(query, key, scaled)
        return weigh(owner, scores if bias is None else scores + bias, value, mask, dropout)
    queries, memory, scale = query.size(2), key.size(2), None if scaled else 1.0
    if bias is None and mask.causal and mask.visible is None and queries == memory:
        return F.scaled_dot_product_attention(
            query, key, value, dropout_p=dropout, is_causal=True, scale=scale
        )
    dense = mask.dense(queries, memory, query.device)
    if dense is None and bias is None and queries == 1 and _is_step_on_cpu(query):
        return _attend_one(query, key, value, scaled)
    if bias is not None:
        dense = bias if dense is None else bias.masked_fill(~dense, -math.inf)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=dense, dropout_p=dropout, scale=scale)


def _by_varlen(owner: nn.Module, query: Tensor, value: Tensor, mask: Mask) -> bool:
    """Whether torch's flash kernel can take sequences of several lengths as they lie: half precision on a
    GPU. Where all have one length, they can be had as rows without a copy."""
    assert mask.packing is not None, "only packed batches have sequences in a row"
    halves = (torch.bfloat16, torch.float16)
    uneven = not all(packing.even for packing in mask.packing)
    fits = query.size(-1) == value.size(-1) and query.size(-1) % 8 == 0 and query.size(-1) <= _WIDEST_FLASH
    return uneven and fits and query.is_cuda and query.dtype in halves and not taps_on(owner)


def _attend_varlen(
    query: Float[Tensor, "1 H N E"],
    key: Float[Tensor, "1 H M E"],
    value: Float[Tensor, "1 H M W"],
    mask: Mask,
    dropout: float,
    scaled: bool,
) -> Float[Tensor, "1 H N W"]:
    assert mask.packing is not None, "only packed batches have sequences in a row"
    here, there = mask.packing
    found = torch.ops.aten._flash_attention_forward(
        *(x[0].transpose(0, 1).contiguous() for x in (query, key, value)),  # else copied on both ways
        here.starts,
        there.starts,
        here.longest,
        there.longest,
        dropout,
        mask.causal,
        False,
        scale=None if scaled else 1.0,
    )
    return found[0].transpose(0, 1)[None]


def _is_step_on_cpu(query: Tensor) -> bool:
    return query.device.type == "cpu" and not torch.is_grad_enabled()


def _attend_one(
    query: Float[Tensor, "B H 1 E"],
    key: Float[Tensor, "B H M E"],
    value: Float[Tensor, "B H M W"],
    scaled: bool,
) -> Float[Tensor, "B H 1 W"]:
    """A single query of each row, as in a search: element by element, which is up to twice as quick on a CPU
    as a kernel that is made for many."""
    scores = (query * key).sum(dim=-1)  # B H M
    weights = (scores / math.sqrt(query.size(-1)) if scaled else scores).softmax(dim=-1)
    return (weights[..., None] * value).sum(dim=2, keepdim=True)


def weigh(
    owner: nn.Module,
    scores: Float[Tensor, "B H Q M"],
    value: Float[Tensor, "B H M W"],
    mask: Mask = EVERYTHING,
    dropout: float = 0.0,
) -> Float[Tensor, "B H Q W"]:
    """Values weighted by a softmax of any scores over the positions that may be looked at."""
    return attention_weights(owner, scores, mask, dropout) @ value


def attention_weights(
    owner: nn.Module, scores: Float[Tensor, "B H Q M"], mask: Mask, dropout: float
) -> Float[Tensor, "B H Q M"]:
    """A softmax over the visible positions; taps see it before its dropout."""
    dense = mask.dense(scores.size(2), scores.size(3), scores.device)
    if dense is not None:
        scores = scores.masked_fill(~dense, -math.inf)
    weights = scores.softmax(dim=-1)
    for tap in taps_on(owner):
        tap(owner, weights)
    return F.dropout(weights, dropout)


def _dot_scores(
    query: Float[Tensor, "B H Q E"], key: Float[Tensor, "B H M E"], scaled: bool
) -> Float[Tensor, "B H Q M"]:
    scores = query @ key.transpose(-2, -1)
    return scores / math.sqrt(query.size(-1)) if scaled else scores


def _query_gain(head_dim: int, scaled: bool) -> float:
    """Without the division by √d_k, queries begin so much smaller, and the scores as if it were there."""
    return 1.0 if scaled else 1 / math.sqrt(head_dim)


def split_heads(x: Float[Tensor, "B T HE"], num_heads: int) -> Float[Tensor, "B H T E"]:
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def join_heads(x: Float[Tensor, "B H T E"]) -> Float[Tensor, "B T HE"]:
    return x.transpose(1, 2).flatten(2)


def _by_kernel(owner: "SelfAttention | CrossAttention", x: Float[Tensor, "B T D"], mask: Mask) -> bool:
    """Whether a packed batch can stay as it is: its sequences are short, and nobody asks for weights."""
    if mask.packing is None or not usable(x) or (owner.dropout and owner.training) or taps_on(owner):
        return False
    from dragoman.kernels.sequences import WIDEST

    longest = max(packing.longest for packing in mask.packing)
    return longest <= LONGEST_SEQUENCE and max(owner.head_dim, owner.value_dim) <= WIDEST


def _attend_inside(
    owner: "SelfAttention | CrossAttention",
    asked: Float[Tensor, "1 N G"],
    memory: Float[Tensor, "1 M J"] | None,
    mask: Mask,
) -> Float[Tensor, "1 N HW"]:
    from dragoman.kernels.sequences import attend_inside

    assert mask.packing is not None, "only packed batches are attended to where they lie"
    here, there = mask.packing
    return attend_inside(
        asked,
        memory,
        (here.starts, there.starts),
        (here.longest, there.longest),
        (owner.num_heads, owner.head_dim, owner.value_dim),
        1 / math.sqrt(owner.head_dim) if owner.scaled else 1.0,
        mask.causal,
    )


class SelfAttention(nn.Module):
    """Queries, keys and values from one sequence; one matrix product makes all three.

    Relative positions come as the `Relation` of a call. `distances` are the layer's own vectors for Shaw's:
    a module that has them needs a relation that says which of them belongs to which pair.
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
        self.scaled = scaled
        widths = [num_heads * head_dim, num_heads * head_dim, num_heads * value_dim]
        self.query_key_value = xavier_linear(model_dim, widths, bias, _query_gain(head_dim, scaled))
        self.out = xavier_linear(num_heads * value_dim, [model_dim], bias)
        self.distances = distances

    def forward(
        self, x: Float[Tensor, "B T D"], mask: Mask, relation: Relation = UNRELATED
    ) -> Float[Tensor, "B T D"]:
        if _by_kernel(self, x, mask):
            return self.out(_attend_inside(self, self.query_key_value(x), None, mask))
        query, key, value = self.project(x, relation)
        return self.out(join_heads(self._attend(query, key, value, mask, relation)))

    def start(self, rows: int, like: Tensor) -> KeyValueCache:
        return KeyValueCache.empty(rows, self.num_heads, self.head_dim, self.value_dim, like)

    def step(
        self,
        x: Float[Tensor, "N Q D"],
        past: KeyValueCache,
        relation: Relation = UNRELATED,
        mask: Mask = EVERYTHING,
    ) -> tuple[Float[Tensor, "N Q D"], KeyValueCache]:
        """One further position, or some: their keys and values join the cache, and they look at what the mask
        shows of it."""
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
        assert relation.clipped is not None, "vectors for distances, and no distances"
        scores = _dot_scores(query, key, self.scaled)
        asked = query / math.sqrt(self.head_dim) if self.scaled else query
        scores = scores + self.distances.scores(asked, relation.clipped)
        weights = attention_weights(self, scores, mask, dropout)
        return weights @ value + self.distances.read(weights, relation.clipped)

    def project(
        self, x: Float[Tensor, "B T D"], relation: Relation = UNRELATED
    ) -> tuple[Float[Tensor, "B H T E"], Float[Tensor, "B H T E"], Float[Tensor, "B H T W"]]:
        """Queries, keys and values; turned, where positions are rotary."""
        key_width, value_width = self.num_heads * self.head_dim, self.num_heads * self.value_dim
        query, key, value = self.query_key_value(x).split([key_width, key_width, value_width], dim=-1)
        query, key = split_heads(query, self.num_heads), split_heads(key, self.num_heads)
        if relation.rotation is not None:
            query, key = relation.rotation(query), relation.rotation(key)
        return query, key, split_heads(value, self.num_heads)


class CrossAttention(nn.Module):
    """Queries from one sequence, keys and values from another, which are projected once."""

    looks_at_memory = True
    """Its weights go over source positions: see `nn/tap.py`."""

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
        self.scaled = scaled
        self.query = xavier_linear(model_dim, [num_heads * head_dim], bias, _query_gain(head_dim, scaled))
        self.key_value = xavier_linear(memory_dim, [num_heads * head_dim, num_heads * value_dim], bias)
        self.out = xavier_linear(num_heads * value_dim, [model_dim], bias)

    def project_memory(
        self, memory: Float[Tensor, "B S D"]
    ) -> tuple[Float[Tensor, "B H S E"], Float[Tensor, "B H S W"]]:
        """The keys and values of a memory, computed once per sentence."""
        widths = [self.num_heads * self.head_dim, self.num_heads * self.value_dim]
        key, value = self.key_value(memory).split(widths, dim=-1)
        return split_heads(key, self.num_heads), split_heads(value, self.num_heads)

    def read(
        self, x: Float[Tensor, "B Q D"], memory: Float[Tensor, "B S G"], mask: Mask
    ) -> Float[Tensor, "B Q D"]:
        """From a memory that is asked once."""
        if _by_kernel(self, x, mask):
            return self.out(_attend_inside(self, self.query(x), self.key_value(memory), mask))
        return self(x, *self.project_memory(memory), mask)

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
