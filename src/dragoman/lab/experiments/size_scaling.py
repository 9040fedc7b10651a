"""Loss by the number of parameters, with a fitted exponent."""

import math

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import final, parameters
from dragoman.lab.statistics import Numbers, mean, slope
from dragoman.lab.tasks import Task

ROW = "validation loss"


def settings(size: Size) -> dict[str, Setting]:
    task = Task("language", size.pairs, longest=size.longest, tests=size.tests)
    return {
        str(width): Setting(task, {"model.model_dim": width, "model.ff_dim": 2 * width})
        for width in size.points
    }


def measure(bench: Bench) -> Numbers:
    found: Numbers = {ROW: {}}
    for runs in bench.runs.values():
        found[ROW][str(parameters(runs[0]))] = [final(run) for run in runs]
    return found


def rule(numbers: Numbers) -> Verdict:
    """Holds if the mean loss falls with every step in size and a straight line through the logarithms
    explains at least 90% of their variance. Holds here for the direction if it falls with every step, but
    not on a line."""
    sizes = [math.log(int(count)) for count in numbers[ROW]]
    losses = [mean(values) for values in numbers[ROW].values()]
    exponent, explained = slope(sizes, [math.log(loss) for loss in losses])
    told = f"loss ∝ parameters^{exponent:.2f}, which explains {100 * explained:.0f}%"
    if sorted(losses, reverse=True) != losses:
        return fails(f"it does not fall with every step: {', '.join(f'{loss:.2f}' for loss in losses)}")
    return holds(told) if explained >= 0.9 else holds_for(f"the direction: {told}")


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "parameters", "validation loss", log_x=True, log_y=True)


EXPERIMENT = Experiment(
    name="size-scaling",
    lecture=2,
    claim="The loss falls with the number of parameters, as a power of it.",
    how="Transformers of growing width learn a made-up language, with the same data and equally many "
    "updates.",
    literature="Kaplan et al. 2020: L ∝ N^−0.076 for language models from 768 to 1.5 billion parameters.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=300, seeds=3, pairs=2000, tests=100, longest=6, points=(8, 16, 32, 64)),
    full=Size(updates=900, seeds=3, pairs=20_000, tests=200, longest=12, points=(8, 16, 32, 64, 128, 256)),
    cell="validation loss in nats a word, by the number of parameters",
    remark="The updates are equally many, so a small model may have converged and a large one not.",
)
