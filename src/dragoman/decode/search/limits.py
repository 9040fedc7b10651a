"""Settings that all search methods share: length limits and ranking. Plain Python."""

from dataclasses import dataclass, replace
from typing import Literal, Self

from dragoman.config import check_counts, check_not_negative
from dragoman.errors import UserError

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
        """The same with this many translations, and a beam that is wide enough for them, if there is a
        beam."""
        return replace(self, n_best=count)

    @property
    def watched(self) -> bool:
        """Whether the search needs the cross-attention."""
        return False

    def widened(self, width: int) -> Self:  # noqa: ARG002
        """The same with this beam size, if the method has a beam."""
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
