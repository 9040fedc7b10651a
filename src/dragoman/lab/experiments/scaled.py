"""Attention with and without the division by √d_k, from the same first weights."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import over_time
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task

FIRST, DIVIDED, PLAIN, SMALLER = (
    "first weights",
    "divided",
    "not divided",
    "not divided, smaller first queries",
)


def settings(size: Size) -> dict[str, Setting]:
    task = Task("reverse", size.pairs, longest=size.longest, tests=size.tests)
    one_head = {"model.num_heads": 1, "train.validate_every": max(1, size.updates // 5)}
    untrained = {"train.max_updates": 1, "optim.rate": 1e-9, "schedule.warmup": 0, "model.num_heads": 1}
    return {
        FIRST: Setting(task, untrained),
        DIVIDED: Setting(task, one_head, start=FIRST),
        PLAIN: Setting(task, {**one_head, "model.scale_attention": False}, start=FIRST),
        SMALLER: Setting(task, {**one_head, "model.scale_attention": False}),
    }


def measure(bench: Bench) -> Numbers:
    found = bench.each(over_time)
    return {label: cells for label, cells in found.items() if label != FIRST}


def rule(numbers: Numbers) -> Verdict:
    """Holds if the last validation loss without the division is surely greater than with it, both from the
    same first weights and from smaller first queries. Holds here for the same first weights if only that is
    so."""
    last = list(numbers[DIVIDED])[-1]
    worse = {name: surely_greater(numbers[name][last], numbers[DIVIDED][last]) for name in (PLAIN, SMALLER)}
    told = ", ".join(f"{label} {mean(cells[last]):.2f}" for label, cells in numbers.items())
    if not worse[PLAIN]:
        return fails(told)
    return holds(told) if worse[SMALLER] else holds_for(f"the same first weights: {told}")


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "update", "validation loss")


EXPERIMENT = Experiment(
    name="scaled",
    lecture=1,
    also=(2, 4),
    claim="Without the division by √d_k a Transformer learns worse.",
    how="One head of the whole width. All begin with the weights of one run that has not learnt yet, and a "
    "third one with query weights that are 1/√d_k of the usual at first, so that its first scores are the "
    "same.",
    literature="Vaswani et al. 2017, section 3.2.1, after Britz et al. 2017; T5 leaves the division out and "
    "scales its first weights.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=200, seeds=3, pairs=4000, tests=50, longest=8),
    full=Size(updates=400, seeds=5, pairs=10_000, tests=50, longest=12, width=128),
    cell="validation loss by update",
)
