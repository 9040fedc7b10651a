"""How to search: the fields of `search:` in a configuration, every number checked. Plain Python."""

from dataclasses import dataclass
from typing import Literal, get_args

from dragoman.errors import UserError

StopRule = Literal["complete", "bound", "limit"]
Method = Literal["beam", "exhaustive"]


@dataclass(frozen=True)
class SearchConfig:
    method: Method = "beam"
    """`exhaustive` starts from the beam's result and goes on until nothing better can exist."""
    beam: int = 5
    n_best: int = 1
    alpha: float = 1.0
    """Length normalisation: hypotheses are ranked by log p / |y|^α."""
    max_ratio: float = 2.0
    max_extra: int = 10
    """A translation has at most max_ratio × source tokens + max_extra tokens."""
    max_length: int | None = None
    """And at most so many, whatever the source has."""
    min_ratio: float = 0.0
    min_length: int = 0
    """A translation has at least min_length tokens, and at least min_ratio × source tokens."""
    no_repeat_ngram: int = 0
    """No so many pieces come twice in the same order; 0 lets everything repeat."""
    repetition_penalty: float = 1.0
    """The log-probability of a piece that is there already counts so many times in the ranking."""
    stop: StopRule = "complete"
    """When a sentence is done. `complete`: as soon as `beam` hypotheses have ended. `bound`: when no live
    hypothesis can still win, even if it reached the greatest length at no further cost. That one is exact for
    the beam, and slow where α is large; `complete` stops there too. `limit`: at the greatest length."""

    max_nodes: int = 100_000
    """Prefixes that an exhaustive search looks at for one sentence before it gives up the proof."""
    record: bool = False
    """Keep what the beam looked at, and what became of it."""

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise UserError(f"method: expected one of {', '.join(get_args(Method))}, found '{self.method}'")
        if self.record and self.method != "beam":
            raise UserError(f"record: only the method beam can be recorded, not {self.method}")
        for name in ("beam", "n_best", "max_length", "max_nodes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name}: expected a whole number of at least 1, found {value}")
        if self.n_best > self.beam:
            raise UserError(
                f"n_best: {self.n_best} hypotheses need a beam of at least {self.n_best}, not {self.beam}"
            )
        for name in ("alpha", "max_ratio", "max_extra", "min_ratio", "min_length", "no_repeat_ngram"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise UserError(f"{name}: expected a number of at least 0, found {getattr(self, name)}")
        if not 1 <= self.repetition_penalty < float("inf"):
            raise UserError(
                f"repetition_penalty: expected a number of at least 1, found {self.repetition_penalty}"
            )
        if self.max_ratio == 0 and self.max_extra == 0:
            raise UserError(
                "max_extra: with max_ratio 0 a translation needs room for at least one token, found 0"
            )

    def longest(self, source_tokens: int) -> int:
        """The most tokens of a translation, `</s>` counted on both sides."""
        allowed = max(1, int(source_tokens * self.max_ratio + self.max_extra))
        return allowed if self.max_length is None else min(allowed, self.max_length)

    def shortest(self, source_tokens: int) -> int:
        """The least tokens before `</s>`; where it contradicts the most, the most wins."""
        least = max(self.min_length, int(source_tokens * self.min_ratio))
        return min(least, self.longest(source_tokens) - 1)
