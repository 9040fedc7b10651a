"""No norm, batch norm, layer norm, RMS norm."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import over_time
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task

KINDS = ("none", "batch", "layer", "rms")


def settings(size: Size) -> dict[str, Setting]:
    task = Task("language", size.pairs, longest=size.longest, tests=size.tests)
    deep = {"model.num_layers": 3, "train.validate_every": max(1, size.updates // 4)}
    return {kind: Setting(task, {**deep, "model.norm_kind": kind}) for kind in KINDS}


def measure(bench: Bench) -> Numbers:
    return bench.each(over_time)


def rule(numbers: Numbers) -> Verdict:
    """Holds if both without a norm and with batch norm the last validation loss is surely greater than with
    layer norm. Holds here for the one of the two that is worse."""
    last = list(numbers["layer"])[-1]
    worse = [
        kind for kind in ("none", "batch") if surely_greater(numbers[kind][last], numbers["layer"][last])
    ]
    told = ", ".join(f"{kind} {mean(cells[last]):.2f}" for kind, cells in numbers.items())
    if len(worse) == 2:
        return holds(told)
    return holds_for(f"{worse[0]}: {told}") if worse else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "update", "validation loss")


EXPERIMENT = Experiment(
    name="norm-kinds",
    lecture=5,
    also=(1, 2),
    claim="Layer norm makes a Transformer learn faster than no norm, and faster than batch norm.",
    how="Pre-norm Transformers of 3 + 3 layers learn a made-up language. Batch norm is over all positions "
    "of the batch in training, and by running averages in validation.",
    literature="Ba et al. 2016; Shen et al. 2020, table 1: BLEU 34.4 with batch norm, 35.5 with layer norm; "
    "Zhang & Sennrich 2019: RMS norm is as good.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=200, seeds=3, pairs=2000, tests=50, longest=6, width=32),
    full=Size(updates=400, seeds=5, pairs=10_000, tests=50, longest=12, width=32),
    cell="validation loss by update",
)
