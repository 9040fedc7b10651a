"""Does attention learn by itself which source word belongs to which target word?"""

from statistics import fmean

from dragoman.lab.bench import Bench
from dragoman.lab.draw import bars
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds
from dragoman.lab.experiments import bottleneck
from dragoman.lab.looks import TaskPair, attention_on
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.runs.directory import Run

SHOWN = 40


def settings(size: Size) -> dict[str, Setting]:
    """The run of the bottleneck."""
    return {"attention": bottleneck.settings(size)["attention"]}


def aligned(run: Run, pairs: list[TaskPair]) -> dict[str, float]:
    """The word at place i of the reversed target is the word at place n − 1 − i of the source."""
    chosen = [pair for pair in pairs if len(pair[0].split()) > 1][:SHOWN]
    found, chance = [], []
    for source, target in chosen:
        count = len(source.split())
        found.append(attention_on(run, (source, target), {i: count - 1 - i for i in range(count)}))
        chance.append(100 / (count + 1))
    return {"on the right word": fmean(found), "by chance": fmean(chance)}


def measure(bench: Bench) -> Numbers:
    return bench.on_test(aligned)


def rule(numbers: Numbers) -> Verdict:
    """Holds if the greatest weight is on the right source word surely more often than in half of the
    cases."""
    found = numbers["attention"]["on the right word"]
    told = f"{mean(found):.0f}% of target words, by chance {mean(numbers['attention']['by chance']):.0f}%"
    return holds(told) if surely_greater(found, [50.0] * len(found)) else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return bars(numbers, "percent of target words", level=50.0)


EXPERIMENT = Experiment(
    name="alignment",
    lecture=1,
    also=(3, 4),
    claim="Attention learns alignment by itself: nobody tells the network which words belong together.",
    how="In the runs of the bottleneck that have attention, the greatest weight of each target word is "
    "looked up; the right source word is known, since the target is the source reversed.",
    literature="Bahdanau et al. 2015, figure 3; Jain & Wallace 2019 warn that weights need not be "
    "explanations.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=bottleneck.EXPERIMENT.quick,
    full=bottleneck.EXPERIMENT.full,
    cell="percent of target words",
)
