"""What goes into a search and what comes out of it: a sentence to translate, a finished hypothesis in ids.

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
"""Finished sentences leave a batch when they are more than one in so many."""

Cancelled = Callable[[], bool]
"""Whether nobody waits for a sentence any more. The thread that searches asks before every step, so it has to
be quick. After a yes there is no no."""
FinishReason = Literal["stop", "length", "loop"]


def never() -> bool:
    return False


@dataclass(frozen=True)
class Job:
    """One sentence on its way through a search.

    A job that is cancelled leaves its batch before the next step, as a finished one does, with the hypotheses
    that it has, or none. The others go on as they are.
    """

    source: tuple[int, ...]
    """What the model reads, `</s>` included."""
    constraints: Constraints = FREE
    cancelled: Cancelled = never
    begin: tuple[int, ...] = ()
    """Pieces that an engine has to start with, where the constraints are kept by searching again
    (`engines/steer.py`). With `</s>` at their end they are the whole translation."""

    @property
    def constrained(self) -> bool:
        return self.constraints != FREE

    def longest(self, config: SearchConfig) -> int:
        """The most tokens of the translation, `</s>` counted. Constraints that need more room get it."""
        longest = config.longest(len(self.source))
        return max(longest, self.constraints.room) if self.constrained else longest

    def shortest(self, config: SearchConfig) -> int:
        """The least tokens before `</s>`."""
        return config.shortest(len(self.source))


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
