"""What an experiment declares. Its rule of the verdict is a pure function of its numbers, written before it
was run for the first time."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from dragoman.lab.statistics import Numbers
from dragoman.lab.tasks import Task

if TYPE_CHECKING:
    from dragoman.lab.bench import Bench

LECTURES = {
    1: "Sequence to sequence, attention, the Transformer",
    2: "The Transformer: its layers and its training",
    3: "From counting to attention; tasks",
    4: "Sequence to sequence and pre-trained models",
    5: "Attention, heads and norms",
}

Said = Literal["holds", "holds here for", "does not hold"]
Pictures = dict[str, bytes]
"""Pictures by suffix: png and svg."""


@dataclass(frozen=True)
class Verdict:
    said: Said
    because: str
    """The numbers that decided, or what it holds for."""

    def __str__(self) -> str:
        return f"{self.said}{' ' if self.said == 'holds here for' else ': '}{self.because}"


def holds(because: str) -> Verdict:
    return Verdict("holds", because)


def holds_for(what: str) -> Verdict:
    return Verdict("holds here for", what)


def fails(because: str) -> Verdict:
    return Verdict("does not hold", because)


@dataclass(frozen=True)
class Size:
    """How much an experiment does. What it has no use for is left as it is."""

    updates: int = 0
    seeds: int = 1
    pairs: int = 3000
    tests: int = 200
    """Sentences to measure on."""
    longest: int = 12
    """Symbols of a made-up sentence."""
    width: int = 64
    points: tuple[int, ...] = ()
    """Values of the independent variable: lengths, widths, beams, numbers of labels."""


@dataclass(frozen=True)
class Setting:
    """One configuration: its data, and fields of `dragoman train` that differ from the lab's recipe."""

    task: Task
    fields: Mapping[str, Any] = field(default_factory=dict)
    start: str | None = None
    """Label of the setting whose run of the same seed it begins with."""


@dataclass(frozen=True)
class Experiment:
    name: str
    lecture: int
    """The first of `LECTURES` that makes the claim."""
    claim: str
    how: str
    """The method, in one or two sentences."""
    literature: str
    """Published results, with their source."""
    measure: "Callable[[Bench], Numbers]"
    rule: Callable[[Numbers], Verdict]
    """Its docstring is the rule in words."""
    figure: Callable[[Numbers], Pictures]
    settings: Callable[[Size], Mapping[str, Setting]] | None = None
    """Settings by label; each is trained once per seed. None: nothing is trained."""
    quick: Size = Size()
    full: Size = Size()
    also: tuple[int, ...] = ()
    """Other lectures that make the claim."""
    cell: str = "value"
    """Meaning of a cell in the table of numbers."""
    remark: str = ""
    """Remarks: limits, errata, what is missing."""
    change: str | None = None
    """A field to try another value of, which the page names. None: for what trains, the number of updates."""

    def __post_init__(self) -> None:
        assert {self.lecture, *self.also} <= set(LECTURES), self.name
        assert inspect.getdoc(self.rule), f"{self.name}: the rule is told in words too"

    @property
    def trains(self) -> bool:
        return self.settings is not None

    @property
    def rule_in_words(self) -> str:
        return " ".join((inspect.getdoc(self.rule) or "").split())

    def size(self, quick: bool) -> Size:
        return self.quick if quick else self.full
