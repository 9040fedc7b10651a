"""Second-order counts with skips: every earlier word, together with the last word, votes for the next one.

    last ─ one-hot × stacked masks ─▶ which earlier words are visible ─ softmax over 0 and −∞ ─▶ weights
    votes: a row of counts for each (earlier word, last word) ───────────────── weights × votes ─▶ next word

The weights of all visible positions are equal, so the mean of the votes can be computed without them: the
fast path. While a tap is open, `weigh` computes them, as in any other attention.
"""

import math

import torch
from torch import nn

from dragoman.nn.attention_kernels import tap_is_open, weigh
from dragoman.nn.context_counts import CountTable
from dragoman.shapes import Bool, Float, Int, Tensor


class Skips(nn.Module):
    """The votes of the features (w, last), and the mask of those that count."""

    def __init__(self, src_size: int, tgt_size: int, smoothing: float, threshold: float | None) -> None:
        """`threshold` is in bits; None hides nothing."""
        super().__init__()
        self.smoothing, self.threshold = smoothing, threshold
        self.first_target, self.words = src_size, src_size + tgt_size
        self.table = MaskedTable(tgt_size)

    def key(self, last: Int[Tensor, "*P"], word: Int[Tensor, "*P"]) -> Int[Tensor, "*P"]:
        return last * self.words + word

    def forward(
        self,
        words: Int[Tensor, "C M"],
        present: Bool[Tensor, "C M"],
        own: Int[Tensor, "C"],
        lower: Float[Tensor, "C V"],
    ) -> Float[Tensor, "C V"]:
        """The mean of the votes of all words before the last word, at position `own`. Changes `lower`."""
        places = torch.arange(words.size(1), device=words.device)
        last = words.gather(1, own[:, None]) - self.first_target  # C 1
        rows = self.table.find(self.key(last.expand_as(words), words))  # C M
        visible = present & (places < own[:, None])
        if self.threshold is not None:
            visible &= self.table.informs(rows)
        trust = self.table.trust(rows, self.smoothing, lower.dtype)
        if tap_is_open():
            alone = ~visible.any(dim=1, keepdim=True) & (places == own[:, None])
            rows, trust = rows.masked_fill(alone, -1), trust.masked_fill(alone, 0.0)
            return self._attend(rows, trust, visible | alone, lower)
        heard = visible.sum(dim=1).clamp(min=1).to(lower.dtype)
        lower *= (1 - trust.where(visible, 0).sum(dim=1) / heard)[:, None]
        where, m = visible.nonzero(as_tuple=True)
        self.table.add_rows(lower, where, rows[where, m], trust[where, m] / heard[where])
        return lower

    def _attend(
        self,
        rows: Int[Tensor, "C M"],
        trust: Float[Tensor, "C M"],
        visible: Bool[Tensor, "C M"],
        lower: Float[Tensor, "C V"],
    ) -> Float[Tensor, "C V"]:
        """The votes with explicit weights: a softmax over 0 and −∞, times the votes."""
        votes = (lower[:, None] * (1 - trust[:, :, None])).flatten(0, 1)  # C·M V
        where = torch.arange(len(votes), device=rows.device)
        self.table.add_rows(votes, where, rows.flatten(), trust.flatten())
        scores = torch.zeros_like(trust).masked_fill(~visible, -torch.inf)
        values = votes.view(len(rows), 1, rows.size(1), -1)  # C 1 M V
        return weigh(self, scores[:, None, None], values)[:, 0, 0]

    def learn_mask(self, lasts: CountTable, shortest: Float[Tensor, "V"]) -> None:
        """A feature is visible if KL(vote ‖ row of the last word), in bits, reaches the threshold.

        q is the last word's row, over `shortest`; p the feature's row over q. Of what the row has not seen,
        the vote has kept the share 1 − λ.
        """
        if self.threshold is None:
            return
        table = self.table
        own = table.rows_of_entries()
        last = lasts.find(table.keys // self.words)
        last_trust = lasts.trust(last, self.smoothing, torch.float64)[own]
        entries = lasts.keys[lasts.rows_of_entries()] * table.size + lasts.pieces
        place = torch.searchsorted(entries, table.keys[own] // self.words * table.size + table.pieces)
        q = last_trust * lasts.counts[place] / lasts.totals[last][own]
        q += (1 - last_trust) * shortest[table.pieces.long()]
        trust = table.trust(torch.arange(len(table), device=q.device), self.smoothing, torch.float64)
        p = trust[own] * table.counts / table.totals[own] + (1 - trust[own]) * q
        seen = torch.zeros_like(trust).index_add_(0, own, q)
        nats = torch.zeros_like(trust).index_add_(0, own, p * (p / q).log())
        nats += (1 - seen).clamp(min=0) * torch.special.xlogy(1 - trust, 1 - trust)
        table.mask = nats / math.log(2) >= self.threshold


class MaskedTable(CountTable):
    """A table whose rows can be hidden; `mask` has one entry per row."""

    mask: Tensor

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.register_buffer("mask", torch.empty(0, dtype=torch.bool))

    def informs(self, rows: Int[Tensor, "*P"]) -> Bool[Tensor, "*P"]:
        if not len(self.mask):
            return torch.zeros_like(rows, dtype=torch.bool)
        return self.mask[rows.clamp(min=0)] & (rows >= 0)

    def is_sound(self) -> bool:
        return super().is_sound() and len(self.mask) in (0, len(self.keys))
