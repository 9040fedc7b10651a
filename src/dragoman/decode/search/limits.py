"""What all methods of searching share: how long a translation is, what it is ranked by. Plain Python."""

from dataclasses import dataclass, replace
from typing import Literal, Self

from dragoman.config import check_counts, check_not_negative
from dragoman.errors import UserError

Method = Literal["beam", "exhaustive", "sample", "mbr"]
LengthPenalty = Literal["power", "gnmt"]
MOST_ALPHA = 10.0
"""length^α stays a number that can be computed with."""
MOST, MOST_HYPOTHESES = (1 << 31) - 1, 10_000
"""A search is told by files too: what engines hold in 32 bits, and what a machine can hold at all."""
_LARGEST_RATIO = 1000


@dataclass(frozen=True)
class SearchLimits:
    """The fields that every method has."""

    method: Method = "beam"
    """`beam`: the most probable translations that a beam finds. `exhaustive`: from there on until nothing
    better can exist. `sample`: drawn from the model's distribution. `mbr`: of many candidates those that
    agree best with all others."""
    n_best: int = 1
    """Translations a sentence: the best of the beam, so many independent samples, or the best candidates."""

    # What hypotheses are ranked by: log p / length penalty.
    alpha: float = 1.0
    length_penalty: LengthPenalty = "power"
    """`power`: |y|^α. `gnmt`: ((5 + |y|) / 6)^α (Wu et al. 2016, equation 14)."""

    # How long a translation is.
    max_ratio: float = 2.0
    max_extra: int = 10
    """A translation has at most max_ratio × source tokens + max_extra tokens."""
    max_length: int | None = None
    """And at most so many, whatever the source has."""
    min_ratio: float = 0.0
    min_length: int = 0
    """A translation has at least min_length tokens, and at least min_ratio × source tokens."""

    # Repetition.
    no_repeat_ngram: int = 0
    """No n-gram of pieces comes twice; 0 is off."""
    repetition_penalty: float = 1.0
    """The log-probability of a piece that is there already counts so many times in the ranking."""

    shortlist: bool = False
    """Score only the pieces that the source's own pieces can become (`ListedScorer`): quicker on a CPU.
    Probabilities are then among those."""

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
        if not 1 <= self.repetition_penalty < float("inf"):
            raise UserError(
                f"repetition_penalty: expected a number of at least 1, found {self.repetition_penalty}"
            )
        if self.max_ratio == 0 and self.max_extra == 0:
            raise UserError(
                "max_extra: with max_ratio 0 a translation needs room for at least one token, found 0"
            )

    def with_n_best(self, count: int) -> Self:
        """So many translations, and a beam that is wide enough for them, where the method has one."""
        return replace(self, n_best=count)

    @property
    def watched(self) -> bool:
        """The search has to see the attention to the source."""
        return False

    def widened(self, width: int) -> Self:  # noqa: ARG002
        """With a beam of that width, where the method has one."""
        return self

    @property
    def summary(self) -> str:
        """In a few words, for a line of a report."""
        return f"method {self.method}, alpha {self.alpha:g}"

    def rank(self, log_prob: float, length: int, covered: float = 0.0) -> float:  # noqa: ARG002
        """What hypotheses are ranked by; the only place that knows. `covered` is Σ_j log min(Σ_i a_ij, 1)."""
        return normalised(log_prob, length, self.alpha, self.length_penalty)

    def best_rank(self, log_prob: float, limit: int) -> float:
        """No continuation ranks higher: further pieces only take from log p, full coverage costs nothing, and
        the greatest length has the greatest length penalty."""
        return self.rank(log_prob, limit)

    def longest(self, source_tokens: int) -> int:
        """The most tokens of a translation, `</s>` counted on both sides."""
        allowed = max(1, int(source_tokens * self.max_ratio + self.max_extra))
        return allowed if self.max_length is None else min(allowed, self.max_length)

    def shortest(self, source_tokens: int) -> int:
        """The least tokens before `</s>`; where it contradicts the most, the most wins."""
        least = max(self.min_length, int(source_tokens * self.min_ratio))
        return min(least, self.longest(source_tokens) - 1)


def normalised(log_prob: float, length: int, alpha: float, penalty: LengthPenalty = "power") -> float:
    """log p / |y|^α, or log p / ((5 + |y|) / 6)^α (Wu et al. 2016), where |y| counts `</s>`: raw sums favour
    short hypotheses."""
    return log_prob / (length if penalty == "power" else (5 + length) / 6) ** alpha
