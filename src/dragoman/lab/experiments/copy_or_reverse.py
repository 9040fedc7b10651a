"""An LSTM without attention: to say a string in the same order, or reversed."""

from dragoman.lab.bench import Bench, rnn
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds
from dragoman.lab.looks import right_by_length
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task


def settings(size: Size) -> dict[str, Setting]:
    fields = rnn(size, attention="none", bidirectional=False)
    return {
        kind: Setting(Task(kind, size.pairs, longest=size.longest, tests=size.tests), fields)
        for kind in ("copy", "reverse")
    }


def measure(bench: Bench) -> Numbers:
    quarter = max(1, bench.size.longest // 4)
    return right_by_length(bench, [quarter * number for number in range(1, 5)])


def rule(numbers: Numbers) -> Verdict:
    """Holds if over all lengths, in the mean of the buckets, reversed strings surely have more words
    right."""
    scores = {
        kind: [mean(values) for values in zip(*cells.values(), strict=True)]
        for kind, cells in numbers.items()
    }
    told = ", ".join(f"{kind} {mean(values):.0f}%" for kind, values in scores.items())
    return holds(told) if surely_greater(scores["reverse"], scores["copy"]) else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "words of the source, at most", "percent of words at their place")


EXPERIMENT = Experiment(
    name="copy-or-reverse",
    lecture=4,
    also=(1,),
    claim="Without attention a reversed string is learnt more easily than one in the same order.",
    how="LSTMs that read from left to right learn to copy or to reverse strings, for equally many updates.",
    literature="Sutskever et al. 2014, section 3.3: reversing the source lowered perplexity from 5.8 to 4.7.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=200, seeds=3, pairs=4000, tests=200, longest=8),
    full=Size(updates=500, seeds=5, pairs=10_000, tests=300, longest=10),
    cell="percent of words at their place, by the length of the source",
)
