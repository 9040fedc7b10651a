"""The result of an objective: a sum over target tokens, and their number.

Losses are sums over target tokens; the training loop divides once per update by the tokens of the whole
update, so that gradient accumulation and several processes equal one large batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dragoman.shapes import Float, Int, Tensor


@dataclass(frozen=True)
class Loss:
    total: Float[Tensor, ""]
    """Summed over the target tokens, differentiable."""
    nll: Float[Tensor, ""]
    """Summed negative log-likelihood without label smoothing, for perplexity."""
    count: int
    """Target tokens."""


@dataclass(frozen=True)
class Answers:
    """A model's outputs for the tokens to predict."""

    hidden: Float[Tensor, "A D"]
    """Hidden vectors before the output projection."""
    targets: Int[Tensor, "A"]
    follows: Float[Tensor, "B 2"] | None = None
    """Scores that the second text follows the first, and that it does not."""


class Carried(Protocol):
    """State that an objective carries from batch to batch; it is part of the checkpoint."""

    def tensors(self) -> dict[str, Tensor]: ...
    def load(self, tensors: Mapping[str, Tensor]) -> None: ...


class Objective:
    """A function of a model and a batch of the matching kind."""

    uses_every_weight: bool = True
    """Whether every parameter gets a gradient in every batch."""
    carried: Carried | None = None

    def __call__(self, model: Any, batch: Any, update: int = 0) -> Loss:
        raise NotImplementedError
