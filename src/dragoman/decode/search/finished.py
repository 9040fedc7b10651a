"""A hypothesis in ids, as a search sets it aside."""

import math
from dataclasses import dataclass, field
from typing import Literal

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.trace import Trace

COMPACT_AT = 8
"""Sentences that are done leave a batch when they are more than one in so many."""

FinishReason = Literal["stop", "length", "loop"]


@dataclass(frozen=True)
class Ended:
    """Tokens with `</s>` at the end, and the log-probability of each."""

    tokens: tuple[int, ...]
    token_scores: tuple[float, ...]
    reason: FinishReason
    ranked: float | None = None
    """What the search ranked it by in place of Σ log p, where a rule reweighs."""
    covered: float = 0.0
    """Σ_j log min(Σ_i a_ij, 1) over source positions j, where the search has watched the attention."""
    exact: bool | None = None
    """See `Hypothesis.exact`."""
    trace: Trace | None = field(default=None, compare=False, repr=False)

    def score(self, config: SearchConfig) -> float:
        log_prob = total(self.token_scores) if self.ranked is None else self.ranked
        return config.rank(log_prob, len(self.tokens), self.covered)


def total(token_scores: tuple[float, ...]) -> float:
    """Exactly rounded, so that the sum does not depend on who adds."""
    return math.fsum(token_scores)
