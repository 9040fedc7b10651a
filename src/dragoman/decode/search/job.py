"""Input and output of a search: a sentence to translate, the limits that every method has, and a finished
hypothesis in token ids; and batches of sentences of similar length, so that little is padded.

Plain Python: every engine takes and returns the same values.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from dragoman.config import LEFT_OUT, check_counts, check_not_negative
from dragoman.decode.rules.constraints import FREE, Constraints
from dragoman.decode.search.trace import Trace
from dragoman.errors import UserError, shown

SearchMethod = Literal["beam", "exhaustive", "sample", "mbr"]
LengthPenalty = Literal["power", "gnmt"]
MOST_ALPHA = 10.0
"""Keeps length^α finite."""
MOST, MOST_HYPOTHESES = (1 << 31) - 1, 10_000
"""Search settings also come from files: limits that engines can hold in 32 bits, and that fit into memory."""
_LARGEST_RATIO = 1000


@dataclass(frozen=True)
class SearchLimits:
    """The fields that every method has."""

    method: SearchMethod = "beam"
    """`beam`: beam search. `exhaustive`: the proven optimum. `sample`: sampling from the model's
    distribution. `mbr`: minimum Bayes risk: the candidates that agree best with all others."""
    n_best: int = 1
    """Translations per sentence: the best of the beam, independent samples, or the best candidates."""

    # Ranking: log p / length penalty.
    alpha: float = 1.0
    length_penalty: LengthPenalty = "power"
    """`power`: |y|^α. `gnmt`: ((5 + |y|) / 6)^α (Wu et al. 2016, equation 14)."""

    # Length limits.
    max_ratio: float = 2.0
    max_extra: int = 10
    """A translation has at most max_ratio × source tokens + max_extra tokens."""
    max_length: int | None = None
    """And at most this many, for any source."""
    min_ratio: float = 0.0
    min_length: int = 0
    """A translation has at least min_length tokens, and at least min_ratio × source tokens."""

    # Repetition.
    no_repeat_ngram: int = 0
    """Forbid repeated n-grams of this length; 0: off."""
    repetition_penalty: float = 1.0
    """Factor on the log-probability of tokens that were already generated, for ranking."""

    shortlist: bool = False
    """Score only the tokens that the source tokens can become (`ListedScorer`): faster on a CPU.
    Probabilities are then normalised over those."""

    brackets: str = field(default="", metadata=LEFT_OUT)
    """Pairs of brackets that a translation keeps valid, such as `()` or `()[]{}`: it closes what is open, and
    ends when nothing is. Empty: no rule."""

    def __post_init__(self) -> None:
        if self.method != type(self).method:
            raise UserError(f"method: these are the fields of {type(self).method}, not of {self.method}")
        check_counts(self, "n_best", most=MOST_HYPOTHESES)
        check_counts(self, "max_length", most=MOST)
        check_not_negative(self, "alpha")
        check_not_negative(self, "max_extra", "min_length", "no_repeat_ngram", most=MOST)
        check_not_negative(self, "max_ratio", "min_ratio", most=_LARGEST_RATIO)
        if self.alpha > MOST_ALPHA:
            raise UserError(f"alpha: expected a number from 0 to {MOST_ALPHA:g}, found {self.alpha:g}")
        single = len(set(self.brackets)) == len(self.brackets) and self.brackets.isascii()
        if len(self.brackets) % 2 or not single or not all(map(str.isprintable, self.brackets)):
            raise UserError(
                f"brackets: expected pairs of ASCII characters, all different, such as () or ()[], found "
                f"{shown(self.brackets)}"
            )
        if not 1 <= self.repetition_penalty < float("inf"):
            raise UserError(
                f"repetition_penalty: expected a number of at least 1, found {self.repetition_penalty}"
            )
        if self.max_ratio == 0 and self.max_extra == 0:
            raise UserError(
                "max_extra: with max_ratio 0 a translation needs room for at least one token, found 0"
            )

    def with_n_best(self, count: int) -> Self:
        """The same with this many translations, and a beam that is wide enough for them, if there is a
        beam."""
        return replace(self, n_best=count)

    @property
    def watched(self) -> bool:
        """Whether the search needs the cross-attention."""
        return False

    def widened(self, width: int) -> Self:  # noqa: ARG002
        """This configuration with another beam size, if the method has a beam."""
        return self

    @property
    def summary(self) -> str:
        """A short description for reports."""
        return f"method {self.method}, alpha {self.alpha:g}"

    def rank(self, log_prob: float, length: int, covered: float = 0.0) -> float:  # noqa: ARG002
        """The ranking score, defined only here. `covered` is Σ_j log min(Σ_i a_ij, 1)."""
        return normalised(log_prob, length, self.alpha, self.length_penalty)

    def best_rank(self, log_prob: float, limit: int) -> float:
        """Upper bound on the rank of all continuations: more tokens only lower log p, full coverage costs
        nothing, and the maximum length has the largest length penalty."""
        return self.rank(log_prob, limit)

    def longest(self, source_tokens: int) -> int:
        """Maximum length of a translation in tokens, including `</s>` on both sides."""
        allowed = max(1, int(source_tokens * self.max_ratio + self.max_extra))
        return allowed if self.max_length is None else min(allowed, self.max_length)

    def shortest(self, source_tokens: int) -> int:
        """Minimum number of tokens before `</s>`; the maximum takes precedence."""
        least = max(self.min_length, int(source_tokens * self.min_ratio))
        return min(least, self.longest(source_tokens) - 1)


def normalised(log_prob: float, length: int, alpha: float, penalty: LengthPenalty = "power") -> float:
    """log p / |y|^α, or log p / ((5 + |y|) / 6)^α (Wu et al. 2016), where |y| includes `</s>`: raw sums
    favour short hypotheses."""
    return log_prob / (length if penalty == "power" else (5 + length) / 6) ** alpha


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

    source: Any
    """Input of the model: token ids (a tuple), including `</s>`, or an array of vectors."""
    constraints: Constraints = FREE
    cancelled: Cancelled = never
    begin: tuple[int, ...] = ()
    """Tokens that the translation is forced to start with, for engines that enforce constraints by searching
    again (`engines/engine.py`). If they end with `</s>`, they are the whole translation."""
    most: int | None = None
    """Its maximum length in tokens, where that does not follow from the source."""

    @property
    def pieces(self) -> tuple[int, ...]:
        """The source pieces. Empty for an array of vectors."""
        return self.source if isinstance(self.source, tuple) else ()

    @property
    def constrained(self) -> bool:
        return self.constraints != FREE

    def longest(self, config: SearchLimits) -> int:
        """Maximum length in tokens, including `</s>`. It is raised if the constraints need more."""
        longest = config.longest(len(self.source)) if self.most is None else self.most
        return max(longest, self.constraints.room) if self.constrained else longest

    def shortest(self, config: SearchLimits) -> int:
        """Minimum number of tokens before `</s>`."""
        least = config.shortest(len(self.source))
        return least if self.most is None else min(least, self.most - 1)


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

    def score(self, config: SearchLimits) -> float:
        log_prob = total(self.token_scores) if self.ranked is None else self.ranked
        return config.rank(log_prob, len(self.tokens), self.covered)


def total(token_scores: tuple[float, ...]) -> float:
    """Exactly rounded, so that the sum does not depend on the order of addition."""
    return math.fsum(token_scores)


def by_length(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Numbers of neighbours in length, longest first, so that too little memory shows at once."""
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    for part in neighbour_batches([lengths[number] for number in order], batch_tokens):
        yield order[part]


def neighbour_batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[slice]:
    """Neighbours as they stand. In each batch n × longest ≤ `batch_tokens`; one that is longer than that is a
    batch of its own. A batch is full before the next one begins."""
    start, longest = 0, 0
    for place, length in enumerate(lengths):
        longest = max(longest, length)
        if place > start and longest * (place + 1 - start) > batch_tokens:
            yield slice(start, place)
            start, longest = place, length
    if lengths:
        yield slice(start, len(lengths))
