"""What every objective gives: a sum over what was asked for, and how much that was."""

from dataclasses import dataclass
from typing import Any, Protocol

from dragoman.shapes import Float, Tensor


@dataclass(frozen=True)
class Loss:
    total: Float[Tensor, ""]
    """Summed over the target tokens, differentiable."""
    nll: Float[Tensor, ""]
    """Summed negative log-likelihood without label smoothing, for perplexity."""
    count: int
    """Target tokens."""


class Objective(Protocol):
    """A model and a batch of the kinds that belong to it."""

    def __call__(self, model: Any, batch: Any, update: int) -> Loss: ...
