"""The norm before or after each sublayer, by depth."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import final
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task


def settings(size: Size) -> dict[str, Setting]:
    task = Task("copy", size.pairs, longest=size.longest, tests=size.tests)
    return {
        f"{place} {depth}": Setting(task, {"model.num_layers": depth, **switch})
        for depth in size.points
        for place, switch in (("pre", {}), ("post", {"model.norm": "post"}))
    }


def measure(bench: Bench) -> Numbers:
    found: Numbers = {"pre": {}, "post": {}}
    for label, runs in bench.runs.items():
        place, depth = label.split()
        found[place][depth] = [final(run) for run in runs]
    return found


def rule(numbers: Numbers) -> Verdict:
    """Holds if at the greatest depth the loss with post-norm is surely greater than with pre-norm, and at the
    smallest it is not. Holds here for every depth alike if it is greater at both."""
    shallow, *_, deep = numbers["pre"]
    worse = {
        depth: surely_greater(numbers["post"][depth], numbers["pre"][depth]) for depth in (shallow, deep)
    }
    told = ", ".join(
        f"{depth} layers: pre {mean(cells):.2f}, post {mean(numbers['post'][depth]):.2f}"
        for depth, cells in numbers["pre"].items()
    )
    if not worse[deep]:
        return fails(told)
    return holds_for(f"every depth: {told}") if worse[shallow] else holds(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "layers of encoder and decoder", "validation loss")


EXPERIMENT = Experiment(
    name="norm-place",
    lecture=2,
    also=(5,),
    claim="Deep Transformers train with the norm before each sublayer, and not with the norm after it.",
    how="Transformers of several depths learn to copy strings at a highest rate of 0.003 after 30 updates "
    "of warm-up.",
    literature="Wang et al. 2019, figure 3; Xiong et al. 2020; Liu et al. 2020, figure 1: an 18-layer "
    "post-norm model does not train.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=150, seeds=3, pairs=3000, tests=50, longest=8, width=32, points=(1, 2, 4)),
    full=Size(updates=400, seeds=3, pairs=10_000, tests=50, longest=8, width=32, points=(1, 2, 4, 8)),
    cell="validation loss in nats a word, by depth",
    remark="The runs with pre-norm are those of residual-depth.",
)
