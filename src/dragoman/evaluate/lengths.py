"""Compare runs by source length.

A model that encodes a sentence in one vector gets worse with length; one with attention need not (Bahdanau et
al. 2015, figure 2; Luong et al. 2015, figure 6). The test set is divided into buckets by source length, the
same for every run, and each bucket is scored as a test set of its own.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Literal

import numpy as np
from sacrebleu.significance import PairedTest

from dragoman.errors import UserError
from dragoman.evaluate.metrics import FURTHER, Metric, check_same_count, make_scorers, measure

LengthUnit = Literal["words", "characters"]
MetricName = Literal["bleu", "chrf", "rouge", "brackets"]
MIN_SENTENCES = 30
"""Smallest bucket if the edges are chosen from the data: BLEU of fewer sentences is unreliable."""
_MOST_BUCKETS = 7
"""Largest number of buckets that fit into a one-column figure."""


@dataclass(frozen=True)
class Bucket:
    """The sentences whose source has more than `above` and at most `upto` words."""

    above: int | None
    """None: no lower limit."""
    upto: int | None
    """None: no upper limit."""
    places: tuple[int, ...]
    """Indices of its sentences in the test set."""

    @property
    def label(self) -> str:
        if self.above is None:
            return "all" if self.upto is None else f"≤ {self.upto}"
        if self.upto is None:
            return f"> {self.above}"
        return f"{self.upto}" if self.above + 1 == self.upto else f"{self.above + 1}–{self.upto}"


@dataclass(frozen=True)
class RunScores:
    label: str
    overall: dict[MetricName, Metric]
    p_value: float | None
    """p-value of the difference to the first run on the whole test set; None for the first, or without
    bootstrap."""
    by_length: list[Metric]
    """Scores of each bucket."""


@dataclass(frozen=True)
class Comparison:
    metric: MetricName
    unit: LengthUnit
    num_sentences: int
    buckets: list[Bucket]
    runs: list[RunScores]

    def rows(self) -> list[list[str]]:
        """A header and one row for each score: the data of the plot, at full precision."""
        header = ["run", f"source_{self.unit}", "sentences", "metric", "value"]
        rows = [[*header, "interval_low", "interval_high", "p_value", "signature"]]
        for run in self.runs:
            for name, metric in run.overall.items():
                p_value = run.p_value if name == self.metric else None
                rows.append(_row(run.label, "all", self.num_sentences, metric, p_value))
            for bucket, metric in zip(self.buckets, run.by_length, strict=True):
                rows.append(_row(run.label, bucket.label, len(bucket.places), metric, None))
        return rows


def source_lengths(sources: Sequence[str], unit: LengthUnit) -> list[int]:
    """Words are separated by white space. Characters are for languages without spaces."""
    return [len(source.split()) if unit == "words" else len(source) for source in sources]


def make_buckets(
    lengths: Sequence[int], edges: Sequence[int] | None = None, min_sentences: int = MIN_SENTENCES
) -> list[Bucket]:
    """Divide at the given edges (the maximum length of each bucket), or at edges chosen from the lengths.
    Longer sentences than the last edge are a bucket too. Empty buckets are left out."""
    if not lengths:
        raise UserError("there is no sentence to evaluate")
    if edges is None:
        edges = choose_edges(lengths, min_sentences)
    elif not edges or edges[0] < 1 or any(low >= high for low, high in pairwise(edges)):
        shown = ",".join(map(str, edges))
        raise UserError(f"edges: expected lengths from 1 on that rise, as in 5,10,15, found '{shown}'")
    number = np.searchsorted(edges, lengths)  # an edge belongs to the bucket below it
    limits = pairwise([None, *edges, None])
    buckets = [
        Bucket(above, upto, tuple(np.flatnonzero(number == place).tolist()))
        for place, (above, upto) in enumerate(limits)
    ]
    return [bucket for bucket in buckets if bucket.places]


def choose_edges(lengths: Sequence[int], min_sentences: int = MIN_SENTENCES) -> list[int]:
    """Multiples of the smallest of 1, 2, 3, 5, 10, 20, 30, 50, … that makes at most seven buckets. A bucket
    with fewer than `min_sentences` is merged with the next, the last one with the previous."""
    round_steps = (step * 10**power for power in count() for step in (1, 2, 3, 5))
    found = (_edges_of_step(lengths, step, min_sentences) for step in round_steps)
    return next(edges for edges in found if len(edges) < _MOST_BUCKETS)


def _edges_of_step(lengths: Sequence[int], step: int, min_sentences: int) -> list[int]:
    counts = Counter(-(-length // step) * step for length in lengths)  # by the edge at or above the length
    edges, waiting = [], 0
    for edge in sorted(counts):
        waiting += counts[edge]
        if waiting >= max(1, min_sentences):
            edges.append(edge)
            waiting = 0
    return [edge for edge in edges[:-1] if edge > 0]  # the last bucket has no upper edge


def compare_by_length(
    hypotheses: Mapping[str, Sequence[str]],
    references: Sequence[str],
    buckets: Sequence[Bucket],
    *,
    metric: MetricName = "bleu",
    unit: LengthUnit = "words",
    tokenize: str = "13a",
    lowercase: bool = False,
    bootstrap: int = 0,
) -> Comparison:
    """Score the translations of every run on the whole test set and on each bucket."""
    for texts in hypotheses.values():
        check_same_count(texts, references)
    scorers = make_scorers(tokenize, lowercase, _further(metric))
    names: tuple[MetricName, ...] = ("bleu", "chrf", *_further(metric))
    runs: list[RunScores] = []
    first: Sequence[str] | None = None
    for label, texts in hypotheses.items():
        overall: dict[MetricName, Metric] = {
            name: measure(scorers[name], texts, references, bootstrap) for name in names
        }
        by_length = [
            measure(
                scorers[metric],
                [texts[place] for place in bucket.places],
                [references[place] for place in bucket.places],
                bootstrap,
            )
            for bucket in buckets
        ]
        p_value = None
        if first is None:
            first = texts
        elif bootstrap > 1:
            p_value = paired_bootstrap(
                first, texts, references, metric, tokenize=tokenize, lowercase=lowercase, samples=bootstrap
            )
        runs.append(RunScores(label, overall, p_value, by_length))
    return Comparison(metric, unit, len(references), list(buckets), runs)


def paired_bootstrap(
    baseline: Sequence[str],
    other: Sequence[str],
    references: Sequence[str],
    metric: MetricName = "bleu",
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
    samples: int,
) -> float:
    """sacreBLEU's paired bootstrap (Koehn 2004): the p-value of the difference on a whole test set."""
    if list(baseline) == list(other):
        return 1.0  # sacreBLEU would report a zero difference as significant
    scorer = make_scorers(tokenize, lowercase, _further(metric))[metric]
    systems: list[tuple[str, Sequence[str]]] = [("baseline", list(baseline)), ("other", list(other))]
    _, scores = PairedTest(systems, {metric: scorer}, [list(references)], "bs", n_samples=samples)()
    results = next(found for name, found in scores.items() if name != "System")
    return float(results[1].p_value)  # type: ignore[union-attr]


def _further(metric: MetricName) -> tuple[MetricName, ...]:
    return (metric,) if metric in FURTHER else ()


def interval(metric: Metric) -> tuple[float, float] | None:
    """The 95% bootstrap interval; None without bootstrap."""
    if metric.mean is None or metric.half_width is None:
        return None
    return metric.mean - metric.half_width, metric.mean + metric.half_width


def _row(label: str, bucket: str, sentences: int, metric: Metric, p_value: float | None) -> list[str]:
    numbers = [metric.value, *(interval(metric) or (None, None)), p_value]
    shown = ("" if number is None else f"{number:.6f}" for number in numbers)
    return [label, bucket, str(sentences), metric.name, *shown, metric.signature]
