"""What a search returns. Plain Python: an engine without torch can make these too."""

import math
from dataclasses import dataclass
from typing import Literal

from dragoman.text.protect import Protection

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class Hypothesis:
    """One translation. `tokens` leave out `</s>`, `token_scores` include it as their last entry."""

    text: str
    score: float
    """log_prob / length^α: what hypotheses are ranked by."""
    log_prob: float
    """Σ log p(y_t | y_<t, x), `</s>` included."""
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]
    token_scores: tuple[float, ...]
    finish_reason: FinishReason
    """`stop`: the model ended it; `length`: it was ended at the greatest length allowed."""
    alignment: tuple[tuple[int, int], ...] | None = None
    """Source word and target word, where alignment was asked for."""
    protection: Protection | None = None
    """How the protected spans of the source came into `text`, where it has any. Tokens and scores are those
    of what the model wrote."""


def normalised(log_prob: float, length: int, alpha: float) -> float:
    """score(y) / |y|^α, where |y| counts `</s>`: raw sums favour short hypotheses."""
    return log_prob / length**alpha


def total(token_scores: tuple[float, ...]) -> float:
    """Exactly rounded, so that the sum does not depend on who adds."""
    return math.fsum(token_scores)
