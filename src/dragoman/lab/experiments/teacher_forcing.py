"""Teacher forcing, half of it, or none: how fast a decoder learns to go on by itself."""

from dragoman.lab.bench import Bench, rnn
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import over_time
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task

SHARES = {"forced": 1.0, "half forced": 0.5, "never forced": 0.0}


def settings(size: Size) -> dict[str, Setting]:
    task = Task("reverse", size.pairs, longest=size.longest, tests=size.tests)
    looks = {"train.validate_every": max(1, size.updates // 4), "train.validate_sentences": 100}
    return {
        label: Setting(task, {**rnn(size), **looks, "objective.teacher_forcing": share})
        for label, share in SHARES.items()
    }


def measure(bench: Bench) -> Numbers:
    return bench.each(lambda run: over_time(run, "free_loss"))


def rule(numbers: Numbers) -> Verdict:
    """Holds if at half of the updates, and at the end, the free loss of the forced runs is surely below
    that of the runs that are never forced. Holds here for one of the two moments if only that is so."""
    updates = list(numbers["forced"])
    middle, last = updates[len(updates) // 2 - 1], updates[-1]
    sooner = [
        moment
        for moment in (middle, last)
        if surely_greater(numbers["never forced"][moment], numbers["forced"][moment])
    ]
    told = ", ".join(f"{n} {mean(c[middle]):.2f} and {mean(c[last]):.2f}" for n, c in numbers.items())
    told = f"free loss after {middle} and {last} updates: {told}"
    if len(sooner) == 2:
        return holds(told)
    return holds_for(f"update {sooner[0]}; {told}") if sooner else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "update", "validation loss, own words as input")


EXPERIMENT = Experiment(
    name="teacher-forcing",
    lecture=4,
    also=(1,),
    claim="Teacher forcing converges faster than training on the model's own words.",
    how="LSTMs with attention learn to reverse strings. The decoder is fed the right words, half of them, "
    "or its own alone. All are judged by the loss when it reads its own words.",
    literature="Williams & Zipser 1989; Bengio et al. 2015 on scheduled sampling.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=120, seeds=3, pairs=3000, tests=50, longest=8),
    full=Size(updates=400, seeds=5, pairs=10_000, tests=100, longest=12),
    cell="validation loss by update, with the model's own words as input",
)
