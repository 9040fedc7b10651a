"""Copying: a decoder points at a piece of its source, or generates one (See et al. 2017, section 2.2).

    eᵢ   = (W_q h)ᵀ (W_k mᵢ) / √D + f(rᵢ)          h: decoder, mᵢ: memory, rᵢ: see below
    a    = softmax of e over what can be copied
    g    = σ(uᵀ h + Σᵢ aᵢ (vᵀ mᵢ + k(rᵢ)) + b)
    p(y) = g · softmax(W h)_y + (1 − g) · Σ aᵢ over the source positions i that hold y

The attention is the head's own, so that those inside the decoder keep their fused kernels. A position can be
copied if its piece is one of the target's too and not a control piece. If a source has none, g is 1.

Words are copied piece by piece. rᵢ says how many pieces before position i are those that were written last,
up to a few; f and k are learnt numbers for each. So the head goes on with a word that it has begun, even if
it has never seen it. Every position also offers a second piece, its other form without or with the space of a
word (▁name, name), whose score has a further term wᵀh + c: a name in quotation marks has no space before it.

The result is log p, in float32 at least. A softmax of it is p, so losses and searches take it as logits.
Added up in logarithms it is finite, and so are its gradients, even where a probability is too small for a
float:

    log p(y) = ℓ(y) + log(1 + exp(c(y) − ℓ(y)))      ℓ = log g + log softmax,  c = log (1 − g) + log Σ aᵢ
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.nn.attention_kernels import taps_on
from dragoman.nn.linear import Projection, xavier_linear
from dragoman.nn.mask import Packing
from dragoman.shapes import Bool, Float, Int, Tensor

NOT_COPIED = -1
"""Entry of a copy table: this source piece is not a target piece."""
LONGEST_RUN = 4
"""Pieces written last that are compared with those before a source position."""
_LEAST = 1e-30
"""Attention below this counts as this much: its logarithm stays finite."""
_STRAIGHT = 50.0
"""Beyond it log(1 + exp(x)) is x to the last digit of a float64."""


@dataclass(frozen=True)
class CopySource:
    """The copy candidates of the sources, with one row per sentence, shared by its beams. The second half of
    the 2·S columns are the other forms."""

    keys: Float[Tensor, "B S D"]
    votes: Float[Tensor, "B S"]
    """vᵀ mᵢ, for the gate."""
    pieces: Int[Tensor, "B P"]
    """Target pieces; where nothing can be copied, 0."""
    copyable: Bool[Tensor, "B P"]
    same: Bool[Tensor, "B P P"]
    """Whether two columns hold the same piece that can be copied."""
    first: Bool[Tensor, "B P"]
    """The first column of every piece that can be copied. It stands for all of them."""

    def keep(self, sentences: Int[Tensor, "A"]) -> "CopySource":
        parts = self.keys, self.votes, self.pieces, self.copyable, self.same, self.first
        return CopySource(*(part[sentences] for part in parts))

    def follows(self, ids: Int[Tensor, "B Q"]) -> Bool[Tensor, "B Q S"]:
        """Whether the position before each one holds this target piece, in either form."""
        found = (ids[:, :, None] == self.pieces[:, None]) & self.copyable[:, None]
        here, other = found.chunk(2, dim=-1)
        return F.pad((here | other)[..., :-1], (1, 0))

    def runs(self, ids: Int[Tensor, "B T"]) -> Int[Tensor, "B T S"]:
        """r at every position of the targets that have been read."""
        reached = after = self.follows(ids)
        runs = after.long()
        for _ in range(LONGEST_RUN - 1):  # the same one piece earlier, on both sides
            reached = after & F.pad(reached, (1, 0, 1, 0))[:, :-1, :-1]
            runs = runs + reached
        return runs

    def next_runs(self, ids: Int[Tensor, "B K"], runs: Int[Tensor, "B K S"]) -> Int[Tensor, "B K S"]:
        """r after one further piece."""
        longer = F.pad(runs[..., :-1], (1, 0)).clamp(max=LONGEST_RUN - 1) + 1
        return longer * self.follows(ids)


class CopyHead(nn.Module):
    """The output layer of a decoder that copies; it has the projection to the vocabulary inside."""

    points_at_source = True
    table: Tensor

    def __init__(
        self, projection: Projection, model_dim: int, memory_dim: int, table: Int[Tensor, "2 U"]
    ) -> None:
        """`table` has, for every source piece, the equal target piece and the one that is its other form;
        `NOT_COPIED` if there is none."""
        super().__init__()
        self.projection = projection
        self.query = xavier_linear(model_dim, [model_dim])
        self.key = xavier_linear(memory_dim, [model_dim], bias=False)  # a bias is the same for all positions
        self.other_form = xavier_linear(model_dim, [1])
        self.gate = xavier_linear(model_dim, [1])
        self.vote = xavier_linear(memory_dim, [1], bias=False)
        self.run_scores = nn.Parameter(torch.arange(1.0, LONGEST_RUN + 1))
        self.run_votes = nn.Parameter(torch.zeros(LONGEST_RUN))
        self.scale = 1 / math.sqrt(model_dim)
        self.register_buffer("table", table)

    def read(
        self, memory: Float[Tensor, "B S G"], ids: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"]
    ) -> CopySource:
        pieces = torch.cat([self.table[0][ids], self.table[1][ids]], dim=1)
        size = len(self.projection.weight)
        # A damaged table must not lead anywhere else.
        copyable = mask.repeat(1, 2) & (pieces >= 0) & (pieces < size)
        pieces = pieces.masked_fill(~copyable, 0)
        same = (pieces[:, :, None] == pieces[:, None]) & copyable[:, :, None] & copyable[:, None]
        first = copyable & (same.tril(-1).sum(dim=2) == 0)
        return CopySource(
            self.key(memory) * self.scale, self.vote(memory)[..., 0], pieces, copyable, same, first
        )

    def forward(
        self, hidden: Float[Tensor, "B Q D"], source: CopySource, runs: Int[Tensor, "B Q S"]
    ) -> Float[Tensor, "B Q V"]:
        """log p at all positions, or of all beams, of each sentence."""
        mass, votes = self._look(self.query(hidden), self.other_form(hidden), source, runs)
        rows = hidden.flatten(0, 1)
        pieces, first = (
            part[:, None].expand(mass.shape).flatten(0, 1) for part in (source.pieces, source.first)
        )
        found = self._mix(rows, mass.flatten(0, 1), votes.flatten(0, 1), pieces, first)
        return found.unflatten(0, hidden.shape[:2])

    def packed(
        self,
        hidden: Float[Tensor, "1 N D"],
        tgt_in: Int[Tensor, "1 N"],
        packing: Packing,
        memory: Float[Tensor, "1 M G"],
        ids: Int[Tensor, "1 M"],
        memory_packing: Packing,
    ) -> Float[Tensor, "1 N V"]:
        """`forward` for sequences that lie one after another. Only the attention is padded."""
        src_ids, mask = _padded_ids(ids, memory_packing)
        source = self.read(memory_packing.padded(memory[:, None])[:, 0], src_ids, mask)
        query, other = (
            packing.padded(part[:, None])[:, 0] for part in (self.query(hidden), self.other_form(hidden))
        )
        mass, votes = self._look(query, other, source, source.runs(_padded_ids(tgt_in, packing)[0]))
        mass, votes = (packing.packed(part[:, None])[0, 0] for part in (mass, votes))
        sentences = packing.rows[0]
        return self._mix(hidden[0], mass, votes, source.pieces[sentences], source.first[sentences])[None]

    def _look(
        self,
        query: Float[Tensor, "B Q D"],
        other_form: Float[Tensor, "B Q 1"],
        source: CopySource,
        runs: Int[Tensor, "B Q S"],
    ) -> tuple[Float[Tensor, "B Q P"], Float[Tensor, "B Q 1"]]:
        """The attention that every piece gets, at its first column, and the memory's vote for the gate."""
        scores = query @ source.keys.transpose(1, 2)
        with _exactly(scores):
            scores = _exact(scores)
            by_run = self._by_run(runs).to(scores.dtype)  # B Q S 2
            scores = scores + by_run[..., 0]
            scores = torch.cat([scores, scores + _exact(other_form)], dim=-1)
            lowest = torch.finfo(scores.dtype).min  # not −∞: a source may have nothing to copy
            weights = scores.masked_fill(~source.copyable[:, None], lowest).softmax(dim=-1)
            by_position = weights.unflatten(-1, (2, -1)).sum(dim=-2)
            for tap in taps_on(self):
                tap(self, by_position[:, None])
            votes = source.votes[:, None].to(weights.dtype) + by_run[..., 1]
            return weights @ source.same.to(weights.dtype), (by_position * votes).sum(-1, keepdim=True)

    def _by_run(self, runs: Int[Tensor, "B Q S"]) -> Float[Tensor, "B Q S 2"]:
        """f(r) and k(r). A product: the gradient of a lookup is slow where few rows are looked up often."""
        lengths = torch.arange(1, LONGEST_RUN + 1, device=runs.device)
        numbers = _exact(torch.stack([self.run_scores, self.run_votes], dim=1))  # R 2
        return (runs[..., None] == lengths).to(numbers.dtype) @ numbers

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
            return mixed_with_copies(_exact(logits), _exact(gate) + votes, mass, pieces, first)


def mixed_with_copies(
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


def _padded_ids(ids: Int[Tensor, "1 N"], packing: Packing) -> tuple[Int[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """A row for every sequence, and where it has tokens; elsewhere are those of others."""
    places = torch.arange(packing.longest, device=ids.device)
    rows = ids[0][(packing.starts[:-1, None] + places).clamp(max=ids.size(1) - 1)]
    return rows, places < packing.starts.diff()[:, None]


def _exact(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _exactly(like: Tensor) -> torch.autocast:
    """Mixed precision is off inside."""
    return torch.autocast(like.device.type, enabled=False)
