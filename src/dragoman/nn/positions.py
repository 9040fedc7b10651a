"""Positions: absolute ones are added to embeddings, relative ones count inside self-attention.

    sinusoidal   x_t + PE(t)                                   Vaswani et al. 2017, section 3.5
    learned      x_t + W[t]                                    Gehring et al. 2017, section 3.1
    none         x_t

    t5           q_i·k_j + b[bucket(j − i)]                    Raffel et al. 2020, section 2.1
    rotary       (R_i q_i)·(R_j k_j) = q_i·R_{j−i} k_j         Su et al. 2021, equations 14 to 16
    shaw         q_i·(k_j + a^K[clip(j − i)]),                 Shaw et al. 2018, equations 3 and 4
                 Σ_j α_ij (v_j + a^V[clip(j − i)])

Relative: the distance from query position i to memory position j counts. A stack computes one `Relation` a
call and passes it to all its layers. Queries are always the last `queries` of `memory` positions: all of them
in a whole sequence, one in a step. In a packed batch every token has the place in its own sequence.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.nn.mask import Packing
from dragoman.shapes import Float, Int, Tensor


@dataclass(frozen=True)
class Rotation:
    """Rotates each pair of elements of a vector by an angle that grows with its position."""

    cos: Float[Tensor, "T A"]
    sin: Float[Tensor, "T A"]
    interleaved: bool
    """Pairs are neighbours, as in the paper; otherwise elements half a vector apart, as in Llama."""

    def __call__(self, x: Float[Tensor, "B H T E"]) -> Float[Tensor, "B H T E"]:
        pairs = x.unflatten(-1, (-1, 2) if self.interleaved else (2, -1))
        axis = -1 if self.interleaved else -2
        first, second = pairs.unbind(axis)  # B H T E/2
        turned = [first * self.cos - second * self.sin, first * self.sin + second * self.cos]
        return torch.stack(turned, axis).flatten(-2).to(x.dtype)


SinusoidLayout = Literal["interleaved", "halves"]
_TABLE_LENGTH = 512


def sinusoids(
    length: int,
    dim: int,
    base: float = 10000.0,
    layout: SinusoidLayout = "interleaved",
    start: int = 0,
    device: torch.device | None = None,
) -> Float[Tensor, "T D"]:
    """PE(pos, 2i) = sin(pos / base^(2i/D)), PE(pos, 2i+1) = cos(the same).

    `interleaved` is the paper's order; `halves` puts all sines before all cosines, as Marian does.
    """
    rates = base ** (-torch.arange(0, dim, 2, dtype=torch.float64, device=device) / dim)
    places = torch.arange(start, start + length, dtype=torch.float64, device=device)
    angles = places[:, None] * rates  # T D/2
    if layout == "halves":
        return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :dim]
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)[:, :dim]


class SinusoidTable(nn.Module):
    """The sinusoids of the first positions are kept; those of later positions are computed when needed."""

    table: Tensor

    def __init__(self, dim: int, base: float, layout: SinusoidLayout) -> None:
        super().__init__()
        self.dim, self.base = dim, base
        self.layout: SinusoidLayout = layout
        self.register_buffer("table", sinusoids(_TABLE_LENGTH, dim, base, layout).float(), persistent=False)

    def forward(self, start: int, length: int, like: Tensor) -> Float[Tensor, "T D"]:
        """Rows from `start` on, for the device and precision of `like`."""
        if start + length <= _TABLE_LENGTH and like.dtype != torch.float64:
            return self.table[start : start + length]
        device = None if like.device.type == "mps" else like.device  # Apple's GPUs have no float64
        rows = sinusoids(length, self.dim, self.base, self.layout, start, device)
        return rows.to(torch.promote_types(like.dtype, torch.float32)).to(like.device)


class SinusoidalPositions(nn.Module):
    """Adds a sinusoid to every position. There is no limit on length."""

    def __init__(self, dim: int, layout: SinusoidLayout = "interleaved", base: float = 10000.0) -> None:
        super().__init__()
        self.sinusoids = SinusoidTable(dim, base, layout)

    def forward(self, x: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:
        return x + self.sinusoids(start, x.size(1), x).to(x.dtype)

    def packed(self, x: Float[Tensor, "1 N D"], packing: Packing) -> Float[Tensor, "1 N D"]:
        return x + F.embedding(packing.places, self.sinusoids(0, packing.longest, x).to(x.dtype))


class LearnedPositions(nn.Module):
    """Adds a learnt row to every position (Gehring et al. 2017, section 3.1).

    All positions beyond the table share its last row.
    """

    def __init__(self, max_positions: int, dim: int) -> None:
        super().__init__()
        self.weight = position_weight(max_positions, dim)

    def forward(self, x: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:
        end = start + x.size(1)
        if end <= len(self.weight):
            return x + self.weight[start:end]
        return self.at(x, torch.arange(start, end, device=x.device))

    def at(self, x: Float[Tensor, "B T D"], places: Int[Tensor, "*#B T"]) -> Float[Tensor, "B T D"]:
        """Add the embeddings of given positions, one per token."""
        return x + F.embedding(places.clamp(max=len(self.weight) - 1), self.weight)

    def packed(self, x: Float[Tensor, "1 N D"], packing: Packing) -> Float[Tensor, "1 N D"]:
        return self.at(x, packing.places)


class NoPositions(nn.Module):
    """Leaves the embedding as it is."""

    def forward(self, x: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:  # noqa: ARG002
        return x

    def packed(self, x: Float[Tensor, "1 N D"], packing: Packing) -> Float[Tensor, "1 N D"]:  # noqa: ARG002
        return x


@dataclass(frozen=True)
class Relation:
    """Relative positions for the self-attentions of a stack. Empty if positions are absolute."""

    bias: Float[Tensor, "1 H Q M"] | None = None
    """t5: added to the scores."""
    rotation: Rotation | None = None
    """rotary: for the queries, and for the keys of the same positions."""
    clipped: Int[Tensor, "Q M"] | None = None
    """shaw: the row of the layer's own tables for each pair of positions."""


UNRELATED = Relation()


class NoRelation(nn.Module):
    def forward(self, queries: int, memory: int, like: Tensor) -> Relation:  # noqa: ARG002
        return UNRELATED

    def packed(self, packing: Packing, like: Tensor) -> Relation:  # noqa: ARG002
        return UNRELATED


def distance_buckets(num_buckets: int, max_distance: int, causal: bool) -> Int[Tensor, "R"]:
    """The bucket of every distance from −`max_distance` to `max_distance`. Greater distances use the last
    ones.

    Half of the buckets hold one distance each, the others logarithmically more up to `max_distance`. If not
    causal, the second half of the buckets is for positions after the query; otherwise those are in bucket 0.
    """
    distance = torch.arange(-max_distance, max_distance + 1)
    if causal:
        ahead, distance = 0, (-distance).clamp(min=0)
    else:
        num_buckets //= 2
        ahead, distance = (distance > 0) * num_buckets, distance.abs()
    exact = num_buckets // 2
    # Published models compute these logarithms in float32; the bounds must be the same.
    far = torch.log(distance.clamp(min=1).float() / exact) / math.log(max_distance / exact)
    coarse = exact + (far * (num_buckets - exact)).long()
    return ahead + torch.where(distance < exact, distance, coarse.clamp(max=num_buckets - 1))


class BucketedBias(nn.Module):
    """One learnt bias for every head and bucket, shared by all layers of a stack."""

    buckets: Tensor

    def __init__(
        self, num_heads: int, model_dim: int, num_buckets: int, max_distance: int, causal: bool
    ) -> None:
        super().__init__()
        self.weight = bias_table(num_buckets, num_heads, model_dim)
        self.max_distance = max_distance
        self.register_buffer("buckets", distance_buckets(num_buckets, max_distance, causal), persistent=False)

    def forward(self, queries: int, memory: int, like: Tensor) -> Relation:
        farthest = self.max_distance
        distances = torch.arange(1 - memory, queries, device=like.device).clamp(-farthest, farthest)
        by_distance = F.embedding(self.buckets[distances + farthest], self.weight)  # Q+M-1 H
        # Each query sees a window of M of these numbers, the next query the window one position earlier.
        windows = by_distance.unfold(0, memory, 1).flip(0)  # Q H M
        return Relation(bias=windows.transpose(0, 1)[None])

    def packed(self, packing: Packing, like: Tensor) -> Relation:
        """For sequences in padded rows."""
        return self(packing.longest, packing.longest, like)


class Rotary(nn.Module):
    """The angles of all positions: position t turns pair i by t / base^(2i/E)."""

    def __init__(self, head_dim: int, base: float, layout: SinusoidLayout) -> None:
        super().__init__()
        self.sinusoids = SinusoidTable(head_dim, base, "halves")
        self.layout: SinusoidLayout = layout

    def forward(self, queries: int, memory: int, like: Tensor) -> Relation:
        return self._relation(self.sinusoids(memory - queries, queries, like))

    def packed(self, packing: Packing, like: Tensor) -> Relation:
        return self.at(packing.places[0], self.sinusoids(0, packing.longest, like))

    def at(self, places: Int[Tensor, "N"], sinusoids: Float[Tensor, "T E"]) -> Relation:
        """With a position for every token. `sinusoids` are those of all positions from 0 on."""
        return self._relation(F.embedding(places, sinusoids))

    def _relation(self, sinusoids: Float[Tensor, "T E"]) -> Relation:
        sin, cos = sinusoids.chunk(2, dim=-1)
        return Relation(rotation=Rotation(cos, sin, self.layout == "interleaved"))


class ClippedDistances(nn.Module):
    """min(max(j − i, −k), k) + k. If causal, distances above 0 have no row."""

    def __init__(self, window: int, causal: bool) -> None:
        super().__init__()
        self.window, self.ahead = window, 0 if causal else window

    def forward(self, queries: int, memory: int, like: Tensor) -> Relation:
        places = torch.arange(memory, device=like.device)
        distances = places[None] - places[memory - queries :, None]
        return Relation(clipped=distances.clamp(-self.window, self.ahead) + self.window)

    def packed(self, packing: Packing, like: Tensor) -> Relation:
        """For sequences in padded rows."""
        return self(packing.longest, packing.longest, like)


class DistanceVectors(nn.Module):
    """The tables a^K and a^V of one layer, shared by its heads.

    a_ij is never materialised for all pairs: products with the few rows of a table are gathered for the
    pairs, and the weights of the pairs are summed per row.
    """

    def __init__(self, window: int, head_dim: int, value_dim: int, causal: bool) -> None:
        super().__init__()
        rows = window + 1 if causal else 2 * window + 1
        self.key = xavier_table(rows, head_dim)
        self.value = xavier_table(rows, value_dim)

    def scores(
        self, query: Float[Tensor, "B H Q E"], clipped: Int[Tensor, "Q M"]
    ) -> Float[Tensor, "B H Q M"]:
        """q_i · a^K_ij."""
        by_row = query @ self.key.t()  # B H Q R
        return by_row.gather(-1, clipped.expand(*by_row.shape[:2], -1, -1))

    def read(
        self, weights: Float[Tensor, "B H Q M"], clipped: Int[Tensor, "Q M"]
    ) -> Float[Tensor, "B H Q W"]:
        """Σ_j α_ij a^V_ij."""
        by_row = weights.new_zeros(*weights.shape[:3], len(self.value))  # B H Q R
        return by_row.scatter_add(-1, clipped.expand_as(weights), weights) @ self.value


def position_weight(size: int, dim: int) -> nn.Parameter:
    """Normal with standard deviation 0.1 (Gehring et al. 2017, section 3.5)."""
    return nn.Parameter(torch.empty(size, dim).normal_(std=0.1))


def xavier_table(rows: int, dim: int) -> nn.Parameter:
    """Rows that are added to keys or values: as a linear layer of this shape."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(rows, dim)))


def bias_table(rows: int, num_heads: int, model_dim: int) -> nn.Parameter:
    """Numbers that are added to scores: normal with variance 1/D, as T5 begins (Raffel et al. 2020)."""
    return nn.Parameter(torch.empty(rows, num_heads).normal_(std=model_dim**-0.5))
