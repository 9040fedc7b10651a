"""Warm-up, with the norm after each sublayer or before it."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import over_time
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task


def settings(size: Size) -> dict[str, Setting]:
    task = Task("copy", size.pairs, longest=size.longest, tests=size.tests)
    deep = {"model.num_layers": 3, "train.validate_every": max(1, size.updates // 4)}
    return {
        f"{norm}-norm, {name}": Setting(task, {**deep, "model.norm": norm, "schedule.warmup": warm})
        for norm in ("post", "pre")
        for name, warm in (("warm-up", max(1, size.updates // 4)), ("none", 0))
    }


def measure(bench: Bench) -> Numbers:
    return bench.each(over_time)


def rule(numbers: Numbers) -> Verdict:
    """Holds if post-norm without warm-up surely ends with a greater loss than with it, and pre-norm does not.
    Holds here for both norms if both do."""
    last = list(numbers["pre-norm, none"])[-1]
    needs = {
        norm: surely_greater(numbers[f"{norm}-norm, none"][last], numbers[f"{norm}-norm, warm-up"][last])
        for norm in ("post", "pre")
    }
    told = ", ".join(f"{label} {mean(cells[last]):.2f}" for label, cells in numbers.items())
    if not needs["post"]:
        return fails(told)
    return holds_for(f"both norms: {told}") if needs["pre"] else holds(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "update", "validation loss")


EXPERIMENT = Experiment(
    name="warm-up",
    lecture=2,
    claim="A post-norm Transformer needs warm-up; with pre-norm it can be left out.",
    how="Transformers of 3 + 3 layers learn to copy strings at a highest rate of 0.003, with a quarter of "
    "the updates as warm-up or none.",
    literature="Xiong et al. 2020, figures 1 and 2.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=120, seeds=3, pairs=3000, tests=50, longest=8, width=32),
    full=Size(updates=300, seeds=5, pairs=10_000, tests=50, longest=12, width=64),
    cell="validation loss by update",
)
