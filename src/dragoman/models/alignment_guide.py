"""Which head of a model learns to align words, for guided alignment."""

import math
from dataclasses import dataclass
from typing import Literal

from torch import nn

from dragoman.errors import UserError
from dragoman.models.base import source_attentions


@dataclass(frozen=True)
class AlignmentGuide:
    """Which head learns to align, and how much that counts (Garg et al. 2019)."""

    weight: float = 0.0
    """0 is off."""
    layer: int | None = None
    """Of the attentions to the source: 0 the first, −1 the last; None the last but one, or the only one."""
    head: int = 0
    step: Literal["read", "predict"] = "read"
    """Where the head looks for a word: at the step that reads it, or at the one that predicts it."""

    def __post_init__(self) -> None:
        if not 0 <= self.weight < math.inf:
            raise UserError(f"weight: expected a number of 0 or more, found {self.weight}")
        if self.head < 0:
            raise UserError(f"head: expected a whole number of at least 0, found {self.head}")

    def find(self, model: nn.Module) -> tuple[str, nn.Module]:
        """The name of the attention in a model, and the attention."""
        found = list(source_attentions(model).items())
        where = "objective.guided_alignment"
        if not found:
            raise UserError(f"{where}.weight: this model has no attention to its source; set it to 0")
        layer = max(-2, -len(found)) if self.layer is None else self.layer
        if not -len(found) <= layer < len(found):
            raise UserError(
                f"{where}.layer: the model has {len(found)} attentions to its source, found {layer}"
            )
        name, module = found[layer]
        heads = getattr(module, "num_heads", 1)
        if self.head >= heads:
            raise UserError(f"{where}.head: {name} has {heads} heads, counted from 0, found {self.head}")
        return name, module
