"""A hypothesis in ids, as a search sets it aside."""

from dataclasses import dataclass

from dragoman.decode.config import SearchConfig
from dragoman.decode.hypothesis import FinishReason, total

COMPACT_AT = 8
"""Sentences that are done leave a batch when they are more than one in so many."""


@dataclass(frozen=True)
class Ended:
    """Tokens with `</s>` at the end, and the log-probability of each."""

    tokens: tuple[int, ...]
    token_scores: tuple[float, ...]
    reason: FinishReason
    covered: float = 0.0
    """Σ_j log min(Σ_i a_ij, 1) over source positions j, where the search has watched the attention."""

    def score(self, config: SearchConfig) -> float:
        return config.rank(total(self.token_scores), len(self.tokens), self.covered)
