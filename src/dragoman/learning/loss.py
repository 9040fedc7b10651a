"""What every objective gives: a sum over what was asked for, and how much that was.

Losses are sums over target tokens; the training loop divides once per update by the tokens of the whole
update, so that accumulation and several processes give what one large batch gives.
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
    """What a model says for the pieces of a text that it is asked for."""

    hidden: Float[Tensor, "A D"]
    """To be projected."""
    targets: Int[Tensor, "A"]
    follows: Float[Tensor, "B 2"] | None = None
    """Scores that the second text follows the first, and that it does not."""


class Carried(Protocol):
    """What an objective keeps from one batch to the next; a checkpoint holds it."""

    def tensors(self) -> dict[str, Tensor]: ...
    def load(self, tensors: Mapping[str, Tensor]) -> None: ...


class Objective:
    """A function of a model and a batch of the kinds that belong to it."""

    uses_every_weight: bool = True
    """Whether every parameter gets a gradient in every batch."""
    carried: Carried | None = None

    def __call__(self, model: Any, batch: Any, update: int = 0) -> Loss:
        raise NotImplementedError
