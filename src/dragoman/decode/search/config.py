"""How to search: the fields of `search:` in a configuration, every number checked. Plain Python.

`docs/searching.md` says when to use what.
"""

from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

from dragoman.config import check_counts, check_not_negative
from dragoman.errors import UserError

Method = Literal["beam", "exhaustive", "sample", "mbr"]
StopRule = Literal["complete", "bound", "limit"]
LengthPenalty = Literal["power", "gnmt"]
Candidates = Literal["samples", "n_best"]
Utility = Literal["chrf", "bleu"]
MOST_ALPHA = 10.0
"""length^α stays a number that can be computed with."""


_MOST, _MOST_HYPOTHESES, _LARGEST_RATIO = (1 << 31) - 1, 10_000, 1000
"""A search is told by files too: what engines hold in 32 bits, and what a machine can hold at all."""


@dataclass(frozen=True)
class SearchConfig:
    method: Method = "beam"
    """`beam`: the most probable translations that a beam finds. `exhaustive`: from there on until nothing
    better can exist. `sample`: drawn from the model's distribution. `mbr`: of many candidates those that
    agree best with all others."""
    beam: int = 5
    n_best: int = 1
    """Translations a sentence: the best of the beam, so many independent samples, or the best candidates."""

    # What hypotheses are ranked by: log p / length penalty + coverage · coverage penalty.
    alpha: float = 1.0
    length_penalty: LengthPenalty = "power"
    """`power`: |y|^α. `gnmt`: ((5 + |y|) / 6)^α (Wu et al. 2016, equation 14)."""
    coverage: float = 0.0
    """β of the same equation: how much it costs to leave source positions without attention."""

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
    loop_guard: bool = True
    """A translation that goes in circles is made anew with repetitions forbidden (`translator/loops.py`)."""

    # Beam search.
    stop: StopRule = "complete"
    """When a sentence is done. `complete`: as soon as `beam` hypotheses have ended. `bound`: when no live
    hypothesis can still win, even if it reached the greatest length at no further cost. That one is exact for
    the beam, and slow where α is large; `complete` stops there too. `limit`: at the greatest length."""
    groups: int = 1
    diversity: float = 0.5
    """Diverse beam search (Vijayakumar et al. 2018): the beam in so many groups, and how much a piece costs
    for every earlier group's hypothesis that has it at the same position."""

    shortlist: bool = False
    """Score only the pieces that the source's own pieces can become (`shortlist_scorer.py`): quicker on a
    CPU. Probabilities are then among those."""

    record: bool = False
    """Keep what the beam looked at, and what became of it."""

    # Exhaustive search.
    max_nodes: int = 100_000
    """Prefixes that it looks at for one sentence before it gives up the proof."""

    # Sampling.
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    """Of the distribution p^(1/temperature) only the k most probable pieces are left (0: all), then the most
    probable ones that together reach top_p, then those with at least min_p of the greatest probability."""
    seed: int = 1

    # Minimum Bayes risk.
    candidates: Candidates = "samples"
    samples: int = 32
    utility: Utility = "chrf"

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise UserError(f"method: expected one of {', '.join(get_args(Method))}, found '{self.method}'")
        check_counts(self, "beam", "n_best", "groups", "samples", most=_MOST_HYPOTHESES)
        check_counts(self, "max_length", "max_nodes", most=_MOST)
        check_not_negative(self, "alpha", "coverage", "diversity", "temperature", "seed")
        check_not_negative(self, "top_k", "max_extra", "min_length", "no_repeat_ngram", most=_MOST)
        check_not_negative(self, "max_ratio", "min_ratio", most=_LARGEST_RATIO)
        if self.alpha > MOST_ALPHA:
            raise UserError(f"alpha: expected a number from 0 to {MOST_ALPHA:g}, found {self.alpha:g}")
        if not 1 <= self.repetition_penalty < float("inf"):
            raise UserError(
                f"repetition_penalty: expected a number of at least 1, found {self.repetition_penalty}"
            )
        if self.seed >= 1 << 63:
            raise UserError(f"seed: expected a whole number below 2^63, found {self.seed}")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top_p: expected a share above 0 and at most 1, found {self.top_p}")
        if not 0 <= self.min_p <= 1:
            raise UserError(f"min_p: expected a share from 0 to 1, found {self.min_p}")
        if self.max_ratio == 0 and self.max_extra == 0:
            raise UserError(
                "max_extra: with max_ratio 0 a translation needs room for at least one token, found 0"
            )
        self._check_method()

    def _check_method(self) -> None:
        """The numbers that depend on each other, and none that would have no effect."""
        if self.method == "mbr" and self.n_best > self.pool:
            raise UserError(
                f"n_best: {self.n_best} translations need as many candidates, not {self.pool}; "
                f"raise {'samples' if self.candidates == 'samples' else 'beam'}"
            )
        if self.method in ("beam", "exhaustive") and self.n_best > self.beam:
            raise UserError(
                f"n_best: {self.n_best} hypotheses need a beam of at least {self.n_best}, not {self.beam}"
            )
        if self.beam % self.groups:
            raise UserError(f"groups: a beam of {self.beam} cannot be divided into {self.groups} groups")
        if self.record and (self.method != "beam" or self.groups > 1):
            raise UserError("record: only the method beam, in one group, can be recorded")
        if self.shortlist and (self.record or self.method == "exhaustive"):
            what = "what is recorded" if self.record else "exhaustive search"
            raise UserError(f"shortlist: {what} goes through the whole vocabulary; leave one of them out")
        for name, default in _defaults().items():
            value = getattr(self, name)
            if value != default and not self._uses(name):
                raise UserError(f"{name}: {value} has no effect with {_WITHOUT_EFFECT[name]}")

    def _uses(self, name: str) -> bool:
        """Whether a field of one method has an effect in this configuration."""
        sampled = self.method == "sample" or (self.method == "mbr" and self.candidates == "samples")
        searched = self.method == "beam" or (self.method == "mbr" and self.candidates == "n_best")
        if name in ("temperature", "top_k", "top_p", "min_p"):
            return sampled
        if name in ("groups", "coverage"):
            return searched
        if name == "max_nodes":
            return self.method == "exhaustive"
        if name == "diversity":
            return searched and self.groups > 1
        return self.method == "mbr" and (name != "samples" or sampled)

    @property
    def pool(self) -> int:
        """How many candidates minimum Bayes risk chooses from."""
        return self.samples if self.candidates == "samples" else self.beam

    def with_method(self, method: Method) -> "SearchConfig":
        """The same with another method; what would have no effect with it takes its default again."""
        if method == self.method:
            return self
        bare = SearchConfig(method, self.beam)
        unused = {name: default for name, default in _defaults().items() if not bare._uses(name)}
        if self.groups > 1 and "groups" not in unused:
            del unused["diversity"]
        most = {"sample": self.n_best, "mbr": self.samples}.get(method, self.beam)
        record, shortlist = self.record and method == "beam", self.shortlist and method != "exhaustive"
        kept = replace(self, record=record, shortlist=shortlist)
        return replace(kept, method=method, **unused, n_best=min(self.n_best, most))  # type: ignore[arg-type]

    def for_candidates(self) -> "SearchConfig":
        """The search that finds what minimum Bayes risk chooses from."""
        method: Method = "sample" if self.candidates == "samples" else "beam"
        plain = {name: _defaults()[name] for name in ("candidates", "samples", "utility")}
        return replace(self, method=method, n_best=self.pool, **plain)  # type: ignore[arg-type]

    def rank(self, log_prob: float, length: int, covered: float = 0.0) -> float:
        """What hypotheses are ranked by; the only place that knows. `covered` is Σ_j log min(Σ_i a_ij, 1)."""
        return normalised(log_prob, length, self.alpha, self.length_penalty) + self.coverage * covered

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


_WITHOUT_EFFECT = {
    **dict.fromkeys(("temperature", "top_k", "top_p", "min_p"), "a beam; choose the method sample or mbr"),
    **dict.fromkeys(("groups", "coverage"), "this method; choose beam"),
    "max_nodes": "this method; choose exhaustive",
    "diversity": "one group; set groups above 1",
    **dict.fromkeys(("candidates", "samples", "utility"), "this method; choose mbr"),
}
"""Fields that belong to some methods, and what to say where they are set for another one."""


def _defaults() -> dict[str, object]:
    return {f.name: f.default for f in fields(SearchConfig) if f.name in _WITHOUT_EFFECT}


def normalised(
    log_prob: float, length: int, alpha: float, penalty: Literal["power", "gnmt"] = "power"
) -> float:
    """log p / |y|^α, or log p / ((5 + |y|) / 6)^α (Wu et al. 2016), where |y| counts `</s>`: raw sums favour
    short hypotheses."""
    return log_prob / (length if penalty == "power" else (5 + length) / 6) ** alpha
