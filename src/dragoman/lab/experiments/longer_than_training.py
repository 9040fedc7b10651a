"""Positions beyond the training length, by their kind."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds
from dragoman.lab.looks import right_by_length
from dragoman.lab.statistics import Numbers, mean
from dragoman.lab.tasks import Task

KINDS = ("sinusoidal", "learned", "rotary", "t5")


def settings(size: Size) -> dict[str, Setting]:
    task = Task("copy", size.pairs, longest=size.longest, longest_test=2 * size.longest, tests=size.tests)
    return {kind: Setting(task, {"model.positions": kind}) for kind in KINDS}


def measure(bench: Bench) -> Numbers:
    longest = bench.size.longest
    return right_by_length(bench, [longest // 2, longest, longest * 3 // 2, longest * 2])


def rule(numbers: Numbers) -> Verdict:
    """Holds if with sinusoidal positions at least half of the words are right at the longest trained
    sources, and sources of up to one and a half times that length keep nine tenths of it, both in the mean.
    Where less than half is right nothing has been learnt that could be kept, and it does not hold."""
    _, trained, beyond, _ = numbers["sinusoidal"]
    told = ", ".join(f"{kind} {mean(c[trained]):.0f} → {mean(c[beyond]):.0f}%" for kind, c in numbers.items())
    learnt, kept = mean(numbers["sinusoidal"][trained]), mean(numbers["sinusoidal"][beyond])
    told = f"up to {trained} words and up to {beyond}: {told}"
    return holds(told) if learnt >= 50 and kept >= 0.9 * learnt else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(
        numbers, "words of the source, at most; trained up to the second mark", "percent of words right"
    )


EXPERIMENT = Experiment(
    name="longer-than-training",
    lecture=1,
    also=(2,),
    claim="Sinusoidal positions let a Transformer go on to sequences longer than those of its training.",
    how="Transformers with four kinds of positions learn to copy strings, and are tested on strings up to "
    "twice as long.",
    literature="Vaswani et al. 2017, section 3.5: «may allow the model to extrapolate»; Press et al. 2022, "
    "figure 1: it hardly does.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=250, seeds=3, pairs=4000, tests=200, longest=8),
    full=Size(updates=800, seeds=5, pairs=10_000, tests=500, longest=12),
    cell="percent of words at their place, by the length of the source",
)
