"""Input and output of a search: a sentence to translate, and a finished hypothesis in token ids.

Plain Python: every engine takes and returns the same values.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from dragoman.decode.rules.constraints import FREE, Constraints
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.trace import Trace

COMPACT_AT = 8
"""Finished sentences are removed from a batch when they are more than one in this many."""

Cancelled = Callable[[], bool]
"""Whether a sentence was cancelled. The search thread calls it before every step, so it must be fast. Once it
returns True, it stays True."""
FinishReason = Literal["stop", "length", "loop"]


def never() -> bool:
    return False


@dataclass(frozen=True)
class Job:
    """One sentence to search.

    A cancelled job leaves its batch before the next step, like a finished one, with the hypotheses that it
    has so far, or none. The other jobs are not affected.
    """

    source: tuple[int, ...]
    """Token ids that the model reads, including `</s>`."""
    constraints: Constraints = FREE
    cancelled: Cancelled = never
    begin: tuple[int, ...] = ()
    """Tokens that the translation is forced to start with, for engines that enforce constraints by searching
    again (`engines/steer.py`). If they end with `</s>`, they are the whole translation."""

    @property
    def constrained(self) -> bool:
        return self.constraints != FREE

    def longest(self, config: SearchConfig) -> int:
        """Maximum length in tokens, including `</s>`. It is raised if the constraints need more."""
        longest = config.longest(len(self.source))
        return max(longest, self.constraints.room) if self.constrained else longest

    def shortest(self, config: SearchConfig) -> int:
        """Minimum number of tokens before `</s>`."""
        return config.shortest(len(self.source))


@dataclass(frozen=True)
class Ended:
    """Tokens with `</s>` at the end, and the log-probability of each."""

    tokens: tuple[int, ...]
    token_scores: tuple[float, ...]
    reason: FinishReason
    ranked: float | None = None
    """The value used for ranking instead of Σ log p, if a rule reweighs."""
    covered: float = 0.0
    """Σ_j log min(Σ_i a_ij, 1) over source positions j, if the search has recorded attention."""
    exact: bool | None = None
    """See `Hypothesis.exact`."""
    trace: Trace | None = field(default=None, compare=False, repr=False)

    def score(self, config: SearchConfig) -> float:
        log_prob = total(self.token_scores) if self.ranked is None else self.ranked
        return config.rank(log_prob, len(self.tokens), self.covered)


def total(token_scores: tuple[float, ...]) -> float:
    """Exactly rounded, so that the sum does not depend on the order of addition."""
    return math.fsum(token_scores)
