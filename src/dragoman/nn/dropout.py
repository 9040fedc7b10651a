"""Dropout whose masks are drawn once for a whole sequence.

    units      the same units are dropped at every position             Gal & Ghahramani 2016
    words      the same words are dropped wherever they occur           Gal & Ghahramani 2016
    weights    single connections are dropped (DropConnect)             Merity et al. 2018, section 2

What is kept is divided by 1 − rate, so the expectation does not change. A mask is drawn when a sequence
begins and travels with its state; modules keep none. Outside training there are no masks.
"""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import nn

from dragoman.shapes import Float, Int, Tensor


def draw_mask(rate: float, *shape: int, like: Tensor) -> Float[Tensor, "..."]:
    """0 with the probability `rate`, else 1 / (1 − rate)."""
    return F.dropout(like.new_ones(shape), rate)


class SequenceDropout(nn.Module):
    """Dropout on the vectors of a sequence: a new mask at every position or, if `held`, one for all
    positions."""

    def __init__(self, rate: float, held: bool) -> None:
        super().__init__()
        self.rate, self.held = rate, held

    def draw(self, rows: int, dim: int, like: Tensor) -> Float[Tensor, "N D"] | None:
        drawn = self.training and self.held and self.rate
        return draw_mask(self.rate, rows, dim, like=like) if drawn else None

    def forward(self, x: Float[Tensor, "N T D"], mask: Float[Tensor, "N D"] | None) -> Float[Tensor, "N T D"]:
        if self.held:
            return x if mask is None else x * mask[:, None].to(x.dtype)
        return F.dropout(x, self.rate, self.training)


class WordDropout(nn.Module):
    """Drops words of the vocabulary for a whole batch: their embeddings are zero."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def draw(self, weight: Float[Tensor, "V D"]) -> Float[Tensor, "V"] | None:
        return draw_mask(self.rate, len(weight), like=weight) if self.training and self.rate else None

    def forward(
        self, x: Float[Tensor, "N T D"], ids: Int[Tensor, "N T"], mask: Float[Tensor, "V"] | None
    ) -> Float[Tensor, "N T D"]:
        return x if mask is None else x * mask[ids][..., None]


@dataclass(frozen=True)
class StackMasks:
    """The dropout masks of recurrent layers; none by default."""

    between: Float[Tensor, "J N D"] | None = None
    """On the input of every layer but the first."""
    past: Float[Tensor, "P N W"] | None = None
    """On the recurrent input of every layer and direction."""
    weights: tuple[Float[Tensor, "G W"], ...] | None = None
    """Recurrent weights after DropConnect, the same for all rows."""

    def rows(self, rows: Int[Tensor, "R"]) -> "StackMasks":
        between, past = (
            None if mask is None else mask.index_select(1, rows) for mask in (self.between, self.past)
        )
        return StackMasks(between, past, self.weights)


NOTHING = StackMasks()
