"""Relative positions inside self-attention: the distance from query position i to memory position j counts.

    t5       q_i·k_j + b[bucket(j − i)]                    Raffel et al. 2020, section 2.1
    rotary   (R_i q_i)·(R_j k_j) = q_i·R_{j−i} k_j         Su et al. 2021, equations 14 to 16
    shaw     q_i·(k_j + a^K[clip(j − i)]),                 Shaw et al. 2018, equations 3 and 4
             Σ_j α_ij (v_j + a^V[clip(j − i)])

A stack computes one `Relation` a call and passes it to all its layers. Queries are always the last `queries`
of `memory` positions: all of them in a whole sequence, one in a step. In a packed batch every token has the
place in its own sequence.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.nn.init import bias_table, xavier_table
from dragoman.nn.mask import Packing
from dragoman.nn.positions import SinusoidLayout, SinusoidTable
from dragoman.nn.rotation import Rotation
from dragoman.shapes import Float, Int, Tensor


@dataclass(frozen=True)
class Relation:
    """What the self-attentions of a stack need to know; nothing, unless positions are relative."""

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
