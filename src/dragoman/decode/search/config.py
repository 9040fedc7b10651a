"""Search settings: the fields of `search:` in a configuration, all values checked. Plain Python.

Each method has a class with the fields that it uses. `SearchLimits` in `job.py` has those of all methods:

    SearchConfig ─┬─ BeamSearch          method: beam (greedy search is a beam of 1)
                  ├─ ExhaustiveSearch    method: exhaustive
                  ├─ SampleSearch        method: sample
                  ├─ MbrOfSamples        method: mbr, candidates: samples
                  └─ MbrOfBeam           method: mbr, candidates: n_best

In YAML they are one flat mapping. Setting a field that the chosen method does not have is an error.
`docs/searching.md` explains when to use what.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, TypeVar, get_args

from dragoman.config import check_counts, check_not_negative
from dragoman.decode.search.job import MOST, MOST_HYPOTHESES, SearchLimits, SearchMethod
from dragoman.errors import UserError, shown

StopRule = Literal["settled", "complete", "bound", "limit"]
EARLY_STOPPING: dict[StopRule, bool | str] = {
    **{"settled": False, "complete": True},
    **{"bound": "never", "limit": "never"},
}
"""The option `early_stopping` of transformers that comes closest."""
Candidates = Literal["samples", "n_best"]
Utility = Literal["chrf", "bleu"]
_ONCE_SHARED = ("beam", "stop", "seed", "loop_guard")
"""Files of earlier versions may set these with any method. They are ignored if the method does not use
them."""
_Chosen = TypeVar("_Chosen", bound="SearchConfig")


@dataclass(frozen=True)
class SearchConfig(SearchLimits):
    """Settings of any method. `SearchConfig(method=…, …)` makes an instance of the class of that method."""

    def __new__(cls, **given: object) -> "SearchConfig":
        if cls is not SearchConfig:
            return object.__new__(cls)
        chosen = _variant(given)
        _refuse_foreign(chosen, [name for name in given if name not in _names(chosen)])
        return object.__new__(chosen)

    @classmethod
    def variant(cls, data: Mapping[str, Any]) -> tuple[type["SearchConfig"], Mapping[str, Any]]:
        """The class for the fields of a file, and those fields that it has. Files of earlier versions contain
        the fields of all methods: fields of other methods are ignored if they have their default."""
        chosen = _variant(data) if cls is SearchConfig else cls
        foreign = {name: owners for name in data if (owners := _owners(name)) and chosen not in owners}
        changed = [
            name
            for name, owners in foreign.items()
            if name not in _ONCE_SHARED and data[name] != getattr(owners[0], name)
        ]
        _refuse_foreign(chosen, changed)
        return chosen, {name: value for name, value in data.items() if name not in foreign}

    def refuse_foreign(self, names: Iterable[str]) -> None:
        """Raise an error for fields that were set and that this method does not have."""
        _refuse_foreign(type(self), [name for name in names if name not in _names(type(self))])

    def converted(self, kind: type[_Chosen], **changes: object) -> _Chosen:
        """Another method, with the fields that both have."""
        both = _names(kind) & _names(type(self)) - {"method", "candidates"}
        if kind is ExhaustiveSearch:
            both.discard("shortlist")
        values: dict[str, Any] = {name: getattr(self, name) for name in both} | changes
        return kind(**values)

    def with_method(self, method: SearchMethod) -> "SearchConfig":
        """This configuration with another method. Fields that only that method has take their defaults."""
        if method == self.method:
            return self
        kind = _variant({"method": method})
        most = self.n_best if kind is SampleSearch else getattr(self, "beam", BeamSearch.beam)
        return self.converted(
            kind, n_best=min(self.n_best, MbrOfSamples.samples if method == "mbr" else most)
        )


@dataclass(frozen=True)
class _WithBeam(SearchConfig):
    beam: int = 5
    stop: StopRule = "settled"
    """When the search of a sentence ends. `complete`: as soon as `beam` hypotheses have ended, however bad
    they are. `settled`: not before the n best of them rank at least as high as the best live one would, if it
    ended here. `bound`: when no live hypothesis can still win, even if it reached the maximum length at no
    further cost. This is exact for the beam, and slow if α is large; the first two stop there too. `limit`:
    at the maximum length."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "beam", most=MOST_HYPOTHESES)
        if self.n_best > self.beam:
            self._refuse_narrow()

    def _refuse_narrow(self) -> None:
        raise UserError(
            f"n_best: {self.n_best} hypotheses need a beam of at least {self.n_best}, not {self.beam}"
        )

    def widened(self, width: int) -> Self:
        return replace(self, beam=width)

    def with_n_best(self, count: int) -> Self:
        return replace(self, n_best=count, beam=max(self.beam, count))

    @property
    def summary(self) -> str:
        return f"beam {self.beam}, alpha {self.alpha:g}"


@dataclass(frozen=True)
class _WithGroups(_WithBeam):
    coverage: float = 0.0
    """β of Wu et al. 2016, equation 14: weight of the coverage penalty."""
    groups: int = 1
    diversity: float = 0.5
    """Diverse beam search (Vijayakumar et al. 2018): number of groups, and the penalty of a token for every
    hypothesis of an earlier group that has it at the same position."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "groups", most=MOST_HYPOTHESES)
        check_not_negative(self, "coverage", "diversity")
        if self.beam % self.groups:
            raise UserError(f"groups: a beam of {self.beam} cannot be divided into {self.groups} groups")
        if self.groups == 1 and self.diversity != type(self).diversity:
            raise UserError(f"diversity: {self.diversity} has no effect with one group; set groups above 1")

    @property
    def watched(self) -> bool:
        return self.coverage > 0

    def rank(self, log_prob: float, length: int, covered: float = 0.0) -> float:
        return super().rank(log_prob, length) + self.coverage * covered


@dataclass(frozen=True)
class _WithDraws(SearchConfig):
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    """The distribution is p^(1/temperature), restricted to the top_k most probable tokens (0: all), then to
    the most probable ones that together reach top_p, then to those with at least min_p of the highest
    probability."""
    seed: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(self, "temperature", "seed")
        check_not_negative(self, "top_k", most=MOST)
        if self.seed >= 1 << 63:
            raise UserError(f"seed: expected a whole number below 2^63, found {self.seed}")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top_p: expected a share above 0 and at most 1, found {self.top_p}")
        if not 0 <= self.min_p <= 1:
            raise UserError(f"min_p: expected a share from 0 to 1, found {self.min_p}")


@dataclass(frozen=True)
class BeamSearch(_WithGroups):
    method: Literal["beam"] = "beam"
    loop_guard: bool = True
    """A translation stuck in a loop is searched again with repetitions forbidden (`loop_guard.py`)."""
    record: bool = False
    """Keep the trace of the search: candidates, and which were kept or pruned."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.record and self.groups > 1:
            raise UserError("record: only the method beam, in one group, can be recorded")
        if self.record and self.shortlist:
            raise UserError(
                "shortlist: what is recorded goes through the whole vocabulary; leave one of them out"
            )

    def plain(self, **changes: object) -> "BeamSearch":
        """A beam search with these changes, in one group and without a trace."""
        kept = {"groups": 1, "diversity": BeamSearch.diversity, "record": False}
        return self.converted(BeamSearch, **kept | changes)


@dataclass(frozen=True)
class ExhaustiveSearch(_WithBeam):
    method: Literal["exhaustive"] = "exhaustive"
    max_nodes: int = 100_000
    """Most prefixes to examine per sentence before the proof is given up."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "max_nodes", most=MOST)
        if self.shortlist:
            raise UserError(
                "shortlist: exhaustive search goes through the whole vocabulary; leave one of them out"
            )

    def first(self) -> BeamSearch:
        """The beam search whose result is the first bound."""
        return self.converted(BeamSearch, loop_guard=False)


@dataclass(frozen=True)
class SampleSearch(_WithDraws):
    method: Literal["sample"] = "sample"


@dataclass(frozen=True)
class MbrOfSamples(_WithDraws):
    """Minimum Bayes risk over samples."""

    method: Literal["mbr"] = "mbr"
    candidates: Literal["samples"] = "samples"
    samples: int = 32
    utility: Utility = "chrf"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "samples", most=MOST_HYPOTHESES)
        if self.n_best > self.samples:
            _refuse_few_candidates(self.n_best, "samples", self.samples)

    def for_candidates(self) -> SampleSearch:
        """The search that produces the candidates."""
        return self.converted(SampleSearch, n_best=self.samples)


@dataclass(frozen=True)
class MbrOfBeam(_WithGroups):
    """Minimum Bayes risk over the n best of a beam."""

    method: Literal["mbr"] = "mbr"
    candidates: Literal["n_best"] = "n_best"
    utility: Utility = "chrf"

    def _refuse_narrow(self) -> None:
        _refuse_few_candidates(self.n_best, "beam", self.beam)

    def for_candidates(self) -> BeamSearch:
        """The search that produces the candidates."""
        return self.converted(BeamSearch, n_best=self.beam, loop_guard=False)


VARIANTS: dict[tuple[str, str], type[SearchConfig]] = {
    ("beam", ""): BeamSearch,
    ("exhaustive", ""): ExhaustiveSearch,
    ("sample", ""): SampleSearch,
    ("mbr", "samples"): MbrOfSamples,
    ("mbr", "n_best"): MbrOfBeam,
}


def _variant(given: Mapping[str, object]) -> type[SearchConfig]:
    method, candidates = given.get("method", "beam"), given.get("candidates", "samples")
    for name, value, allowed in (("method", method, SearchMethod), ("candidates", candidates, Candidates)):
        if value not in get_args(allowed):
            choices = ", ".join(get_args(allowed))
            raise UserError(f"{name}: expected one of {choices}, found {shown(value)}")
    return VARIANTS[str(method), str(candidates) if method == "mbr" else ""]


def _names(kind: type[SearchConfig]) -> set[str]:
    return {field.name for field in fields(kind)}


def _owners(name: object) -> list[type[SearchConfig]]:
    """The classes that have a field."""
    return [kind for kind in VARIANTS.values() if name in _names(kind)]


def _refuse_foreign(kind: type[SearchConfig], names: list[str]) -> None:
    for name in names:
        owners = _owners(name)
        if not owners:
            raise UserError(f"{name}: no method of searching has such a field")
        methods = " and ".join(map(_title, owners))
        raise UserError(f"{name}: the method {_title(kind)} has no such field; it belongs to {methods}")


def _title(kind: type[SearchConfig]) -> str:
    candidates = getattr(kind, "candidates", None)
    return str(kind.method) if candidates is None else f"mbr with candidates {candidates}"


def _refuse_few_candidates(n_best: int, name: str, count: int) -> None:
    raise UserError(f"n_best: {n_best} translations need as many candidates, not {count}; raise {name}")
