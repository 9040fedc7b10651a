"""Residual connections on and off, by depth."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import final
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task

WITH, WITHOUT = "with residual connections", "without"


def settings(size: Size) -> dict[str, Setting]:
    task = Task("copy", size.pairs, longest=size.longest, tests=size.tests)
    return {
        f"{label} {depth}": Setting(task, {"model.num_layers": depth, **switch})
        for depth in size.points
        for label, switch in ((WITH, {}), (WITHOUT, {"model.residual": False}))
    }


def measure(bench: Bench) -> Numbers:
    found: Numbers = {WITH: {}, WITHOUT: {}}
    for label, runs in bench.runs.items():
        name, depth = label.rsplit(" ", 1)
        found[name][depth] = [final(run) for run in runs]
    return found


def rule(numbers: Numbers) -> Verdict:
    """Holds if at the greatest depth the loss without the connections is surely greater by more than 0.5, and
    this difference is surely greater than that at the smallest depth. Holds here for every depth alike if
    only the first is so."""
    shallow, *_, deep = numbers[WITH]
    worse = {
        depth: [without - given for without, given in zip(numbers[WITHOUT][depth], cells, strict=True)]
        for depth, cells in numbers[WITH].items()
    }
    told = ", ".join(
        f"{depth} layers: {mean(cells):.2f} with, {mean(numbers[WITHOUT][depth]):.2f} without"
        for depth, cells in numbers[WITH].items()
    )
    if not surely_greater(numbers[WITHOUT][deep], numbers[WITH][deep], by=0.5):
        return fails(told)
    return holds(told) if surely_greater(worse[deep], worse[shallow]) else holds_for(f"every depth: {told}")


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "layers of encoder and decoder", "validation loss")


EXPERIMENT = Experiment(
    name="residual-depth",
    lecture=1,
    also=(2, 5),
    claim="Residual connections make deep networks trainable.",
    how="Pre-norm Transformers of several depths learn to copy strings, with the connection around every "
    "sublayer and without any.",
    literature="He et al. 2016, figure 1; Dong et al. 2021: without them the rank of attention's output "
    "collapses with depth.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=150, seeds=3, pairs=3000, tests=50, longest=8, width=32, points=(1, 2, 4)),
    full=Size(updates=400, seeds=3, pairs=10_000, tests=50, longest=8, width=32, points=(1, 2, 4, 8)),
    cell="validation loss in nats a word, by depth",
)
