"""Scores of attention compared: those that look at contents, and the one that looks at places alone."""

from dragoman.lab.bench import Bench, rnn
from dragoman.lab.draw import bars
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import right
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task

CONTENT = ("dot", "general", "additive")
PLACE = "location"


def settings(size: Size) -> dict[str, Setting]:
    task = Task("reverse", size.pairs, longest=size.longest, tests=size.tests)
    return {name: Setting(task, rnn(size, attention=name)) for name in (*CONTENT, PLACE)}


def measure(bench: Bench) -> Numbers:
    return bench.on_test(lambda run, pairs: {"right": right(run, pairs, bench.device)})


def rule(numbers: Numbers) -> Verdict:
    """Holds if each score that looks at contents is surely better than location. Holds here for those that
    are."""
    better = [name for name in CONTENT if surely_greater(numbers[name]["right"], numbers[PLACE]["right"])]
    told = ", ".join(f"{name} {mean(cells['right']):.0f}%" for name, cells in numbers.items())
    if len(better) == len(CONTENT):
        return holds(told)
    return holds_for(f"{' and '.join(better)}: {told}") if better else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return bars(numbers, "percent of words at their place")


EXPERIMENT = Experiment(
    name="scores",
    lecture=1,
    also=(3,),
    claim="Scores that compare contents are better than a score that looks at places alone.",
    how="LSTMs with four scores of attention learn to reverse strings, for equally many updates.",
    literature="Luong et al. 2015, table 4: perplexity 6.4 with location, 6.1 with dot and general.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=120, seeds=3, pairs=3000, tests=150, longest=8),
    full=Size(updates=400, seeds=5, pairs=10_000, tests=300, longest=12),
    cell="percent of words at their place",
    remark="To reverse a string is a matter of places, which is kind to location.",
)
