"""Two models that translate together, beside each of them alone."""

from itertools import combinations
from statistics import fmean

import dragoman
from dragoman.lab.bench import Bench
from dragoman.lab.draw import bars
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds
from dragoman.lab.experiments import heads
from dragoman.lab.looks import right, symbols_right
from dragoman.lab.statistics import Numbers, mean, surely_greater

MODEL = "4"


def settings(size: Size) -> dict[str, Setting]:
    return {MODEL: heads.settings(size)[MODEL]}


def measure(bench: Bench) -> Numbers:
    pairs, runs = bench.test_pairs(MODEL), bench.runs[MODEL]
    alone = {run.directory: right(run, pairs, bench.device) for run in runs}
    found: Numbers = {"alone, the mean of both": {"right": []}, "together": {"right": []}}
    for one, other in combinations(runs, 2) if len(runs) > 1 else [(runs[0], runs[0])]:
        both = dragoman.load(one.directory, other.directory, which="last", device=bench.device)
        outputs = both.translate([source for source, _ in pairs])
        scores = [symbols_right(out, pair[1]) for out, pair in zip(outputs, pairs, strict=True)]
        found["together"]["right"].append(fmean(scores))
        found["alone, the mean of both"]["right"].append((alone[one.directory] + alone[other.directory]) / 2)
    return found


def rule(numbers: Numbers) -> Verdict:
    """Holds if over all pairs of runs the two together surely have more words right than the mean of both."""
    alone, together = (cells["right"] for cells in numbers.values())
    told = f"{mean(alone):.1f}% alone, {mean(together):.1f}% together"
    return holds(told) if surely_greater(together, alone) else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return bars(numbers, "percent of words at their place")


EXPERIMENT = Experiment(
    name="ensemble",
    lecture=2,
    claim="Models that differ in their seed alone translate better together than each by itself.",
    how="Every two runs of heads with four heads translate together: the mean of their probabilities counts.",
    literature="Sutskever et al. 2014, table 1: BLEU 30.59 alone, 34.81 with five.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=heads.EXPERIMENT.quick,
    full=heads.EXPERIMENT.full,
    cell="percent of words at their place",
    remark="The pairs of runs share members, so the interval over them is narrower than one over "
    "independent pairs.",
)
