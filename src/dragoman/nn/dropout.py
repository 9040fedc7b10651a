"""Dropout: a quick one for the CPU, and dropout whose masks are drawn once for a whole sequence.

    units      the same units are dropped at every position             Gal & Ghahramani 2016
    words      the same words are dropped wherever they occur           Gal & Ghahramani 2016
    weights    single connections are dropped (DropConnect)             Merity et al. 2018, section 2

What is kept is divided by 1 − rate, so the expectation does not change. A mask is drawn when a sequence
begins and travels with its state; modules keep none. Outside training there are no masks.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.shapes import Float, Int, Tensor

_BITS = 16
_LEVELS = 1 << _BITS


def dropout(x: Float[Tensor, "..."], rate: float, training: bool = True) -> Float[Tensor, "..."]:
    """`F.dropout`, which on a CPU draws 16 random bits for each number instead of calling the generator for
    each: two to three times as fast. Drawing was up to a fifth of an update of a small model. Numbers are
    dropped with the rate rounded to 1/65536."""
    if not training or rate <= 0.0:
        return x
    if x.device.type != "cpu" or not torch.is_grad_enabled() or round(rate * _LEVELS) >= _LEVELS:
        return F.dropout(x, rate)
    return _DropoutOnCpu.apply(x, rate)


class _DropoutOnCpu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float) -> Tensor:
        dropped = round(rate * _LEVELS)
        mask = random_int16(x.numel()).view(x.shape).ge(dropped - _LEVELS // 2).to(x.dtype)
        mask.mul_(1 / (1 - rate))
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (mask,) = ctx.saved_tensors
        return gradients[0] * mask, None


def random_int16(count: int) -> Int[Tensor, "N"]:
    """`count` random numbers of 16 bits, from torch's generator of the CPU."""
    each = 64 // _BITS
    drawn = torch.empty(-(-count // each), dtype=torch.int64).random_(-(1 << 63), None)
    return drawn.view(torch.int16)[:count]


def draw_mask(rate: float, *shape: int, like: Tensor) -> Float[Tensor, "..."]:
    """0 with the probability `rate`, else 1 / (1 − rate)."""
    return dropout(like.new_ones(shape), rate)


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
        return dropout(x, self.rate, self.training)


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
