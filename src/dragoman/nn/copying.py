"""Copying: a decoder points at a piece of its source, or generates one (See et al. 2017, section 2.2).

    aᵢ   = softmax over what can be copied of (W_q h)ᵀ (W_k mᵢ) / √D        h: decoder, mᵢ: memory
    g    = σ(uᵀ h + Σᵢ aᵢ vᵀ mᵢ + b)
    p(y) = g · softmax(W h)_y + (1 − g) · Σ aᵢ over the source positions i that hold y

The attention is the head's own, so that those inside the decoder keep their fused kernels. A position can be
copied if its piece is one of the target's too and not a control piece. If a source has none, g is 1.

The result is log p, in float32 at least. A softmax of it is p, so losses and searches take it as logits.
Added up in logarithms it is finite, and so are its gradients, even where a probability is too small for a
float:

    log p(y) = ℓ(y) + log(1 + exp(c(y) − ℓ(y)))      ℓ = log g + log softmax,  c = log (1 − g) + log Σ aᵢ
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.nn.embedding import Projection
from dragoman.nn.init import xavier_linear
from dragoman.nn.mask import Packing
from dragoman.nn.tap import taps_on
from dragoman.shapes import Bool, Float, Int, Tensor

NOT_COPIED = -1
"""In the table of a copying head: this source piece is no piece of the target."""
_LEAST = 1e-30
"""Attention below this counts as this much: its logarithm stays finite."""
_STRAIGHT = 50.0
"""Beyond it log(1 + exp(x)) is x to the last digit of a float64."""


@dataclass(frozen=True)
class CopySource:
    """What can be copied from the sources: a row a sentence, shared by all its beams."""

    keys: Float[Tensor, "B S D"]
    votes: Float[Tensor, "B S"]
    """vᵀ mᵢ, for the gate."""
    pieces: Int[Tensor, "B S"]
    """The target piece at each position; where it cannot be copied, 0."""
    copyable: Bool[Tensor, "B S"]
    same: Bool[Tensor, "B S S"]
    """Whether two positions hold the same piece that can be copied."""
    first: Bool[Tensor, "B S"]
    """The first position of every piece that can be copied. It stands for all of them."""

    def keep(self, sentences: Int[Tensor, "A"]) -> "CopySource":
        parts = self.keys, self.votes, self.pieces, self.copyable, self.same, self.first
        return CopySource(*(part[sentences] for part in parts))


class CopyHead(nn.Module):
    """The output layer of a decoder that copies; it has the projection to the vocabulary inside."""

    points_at_source = True
    table: Tensor

    def __init__(
        self, projection: Projection, model_dim: int, memory_dim: int, table: Int[Tensor, "U"]
    ) -> None:
        """`table` gives the target piece of every source piece, or `NOT_COPIED`."""
        super().__init__()
        self.projection = projection
        self.query = xavier_linear(model_dim, [model_dim])
        self.key = xavier_linear(memory_dim, [model_dim], bias=False)  # a bias is the same for all positions
        self.gate = xavier_linear(model_dim, [1])
        self.vote = xavier_linear(memory_dim, [1], bias=False)
        self.scale = 1 / math.sqrt(model_dim)
        self.register_buffer("table", table)

    def match(self, src_pieces: Sequence[str | None], tgt_pieces: Sequence[str | None]) -> int:
        """Make the table from the names of the pieces; None is a control piece. Returns how many match."""
        numbers = {name: number for number, name in enumerate(tgt_pieces) if name is not None}
        found = [NOT_COPIED if name is None else numbers.get(name, NOT_COPIED) for name in src_pieces]
        self.table.copy_(torch.tensor(found))
        return len(found) - found.count(NOT_COPIED)

    def read(
        self, memory: Float[Tensor, "B S G"], ids: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"]
    ) -> CopySource:
        pieces = self.table[ids]
        size = len(self.projection.weight)
        copyable = mask & (pieces >= 0) & (pieces < size)  # a damaged table must not lead anywhere else
        pieces = pieces.masked_fill(~copyable, 0)
        same = (pieces[:, :, None] == pieces[:, None]) & copyable[:, :, None] & copyable[:, None]
        first = copyable & (same.tril(-1).sum(dim=2) == 0)
        return CopySource(
            self.key(memory) * self.scale, self.vote(memory)[..., 0], pieces, copyable, same, first
        )

    def forward(self, hidden: Float[Tensor, "B Q D"], source: CopySource) -> Float[Tensor, "B Q V"]:
        """log p at all positions, or of all beams, of each sentence."""
        mass, votes = self._look(self.query(hidden), source)
        rows = hidden.flatten(0, 1)
        pieces, first = (
            part[:, None].expand(mass.shape).flatten(0, 1) for part in (source.pieces, source.first)
        )
        found = self._mix(rows, mass.flatten(0, 1), votes.flatten(0, 1), pieces, first)
        return found.unflatten(0, hidden.shape[:2])

    def packed(
        self,
        hidden: Float[Tensor, "1 N D"],
        packing: Packing,
        memory: Float[Tensor, "1 M G"],
        ids: Int[Tensor, "1 M"],
        memory_packing: Packing,
    ) -> Float[Tensor, "1 N V"]:
        """`forward` for sequences that lie one after another. Only the attention is padded."""
        starts, places = memory_packing.starts, torch.arange(memory_packing.longest, device=ids.device)
        mask = places < starts.diff()[:, None]
        padded_ids = ids[0][(starts[:-1, None] + places).clamp(max=ids.size(1) - 1)]
        source = self.read(memory_packing.padded(memory[:, None])[:, 0], padded_ids, mask)
        mass, votes = self._look(packing.padded(self.query(hidden)[:, None])[:, 0], source)
        mass, votes = (packing.packed(part[:, None])[0, 0] for part in (mass, votes))
        sentences = packing.rows[0]
        return self._mix(hidden[0], mass, votes, source.pieces[sentences], source.first[sentences])[None]

    def _look(
        self, query: Float[Tensor, "B Q D"], source: CopySource
    ) -> tuple[Float[Tensor, "B Q S"], Float[Tensor, "B Q 1"]]:
        """The attention that every piece gets, at its first position, and the memory's vote for the gate."""
        scores = query @ source.keys.transpose(1, 2)
        with _exactly(scores):
            scores = _exact(scores)
            lowest = torch.finfo(scores.dtype).min  # not −∞: a source may have nothing to copy
            weights = scores.masked_fill(~source.copyable[:, None], lowest).softmax(dim=-1)
            for tap in taps_on(self):
                tap(self, weights[:, None])
            votes = weights @ source.votes[:, :, None].to(weights.dtype)
            return weights @ source.same.to(weights.dtype), votes

    def _mix(
        self,
        hidden: Float[Tensor, "R D"],
        mass: Float[Tensor, "R S"],
        votes: Float[Tensor, "R 1"],
        pieces: Int[Tensor, "R S"],
        first: Bool[Tensor, "R S"],
    ) -> Float[Tensor, "R V"]:
        logits, gate = self.projection(hidden), self.gate(hidden)
        with _exactly(mass):
            return mixed(_exact(logits), _exact(gate) + votes, mass, pieces, first)


def mixed(
    logits: Float[Tensor, "R V"],
    gate: Float[Tensor, "R 1"],
    mass: Float[Tensor, "R S"],
    pieces: Int[Tensor, "R S"],
    first: Bool[Tensor, "R S"],
) -> Float[Tensor, "R V"]:
    """log p of generating and copying together. `mass` is the attention that each piece gets; only at its
    `first` position does it count."""
    nothing_to_copy = ~first.any(dim=-1, keepdim=True)
    generated = logits.log_softmax(dim=-1) + F.logsigmoid(gate).masked_fill(nothing_to_copy, 0.0)
    copied = F.logsigmoid(-gate) + mass.clamp(min=_LEAST).log()
    above = F.softplus(copied - generated.gather(1, pieces), threshold=_STRAIGHT)
    return generated.scatter_add(1, pieces, above.masked_fill(~first, 0.0))


def _exact(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _exactly(like: Tensor) -> torch.autocast:
    """Mixed precision is off inside."""
    return torch.autocast(like.device.type, enabled=False)
