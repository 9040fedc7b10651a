"""What a search returns. Plain Python: an engine without torch can make these too."""

import math
from dataclasses import dataclass, field
from typing import Literal

from dragoman.decode.trace import Trace
from dragoman.text.protect import Protection

FinishReason = Literal["stop", "length", "loop"]


@dataclass(frozen=True)
class Hypothesis:
    """One translation. `tokens` leave out `</s>`, `token_scores` include it as their last entry."""

    text: str
    score: float
    """What hypotheses are ranked by: log_prob / length^α as a rule; the expected utility where minimum Bayes
    risk has chosen."""
    log_prob: float
    """Σ log p(y_t | y_<t, x), `</s>` included."""
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]
    token_scores: tuple[float, ...]
    finish_reason: FinishReason
    """`stop`: the model ended it; `length`: it was ended at the greatest length allowed; `loop`: the search
    went in circles, and this was found instead with repetitions forbidden."""
    exact: bool | None = None
    """Of an exhaustive search: True where nothing better exists, False where `max_nodes` ran out before that
    was proven. Other searches prove nothing: None."""
    trace: Trace | None = field(default=None, compare=False, repr=False)
    """What the search looked at, where it was recorded; one object for all hypotheses of a sentence."""
    alignment: tuple[tuple[int, int], ...] | None = None
    """Source word and target word, where alignment was asked for."""
    protection: Protection | None = None
    """How the protected spans of the source came into `text`, where it has any. Tokens and scores are those
    of what the model wrote."""


@dataclass(frozen=True)
class Partial:
    """What has become final since the last one. The last of all has the whole hypothesis."""

    text: str
    tokens: tuple[int, ...] = ()
    hypothesis: Hypothesis | None = None


def normalised(
    log_prob: float, length: int, alpha: float, penalty: Literal["power", "gnmt"] = "power"
) -> float:
    """log p / |y|^α, or log p / ((5 + |y|) / 6)^α (Wu et al. 2016), where |y| counts `</s>`: raw sums favour
    short hypotheses."""
    return log_prob / (length if penalty == "power" else (5 + length) / 6) ** alpha


def total(token_scores: tuple[float, ...]) -> float:
    """Exactly rounded, so that the sum does not depend on who adds."""
    return math.fsum(token_scores)
