"""Loss by compute: the best of several sizes at each point, with a fitted exponent."""

import math

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import over_time, parameters
from dragoman.lab.statistics import Numbers, mean, slope
from dragoman.lab.tasks import Task

TOKENS = 1024
"""Tokens per batch, as in the recipe."""


def settings(size: Size) -> dict[str, Setting]:
    task = Task("language", size.pairs, longest=size.longest, tests=size.tests)
    return {
        f"width {width}": Setting(
            task,
            {
                "model.model_dim": width,
                "model.ff_dim": 2 * width,
                "schedule.name": "constant",
                "train.validate_every": max(1, size.updates // 8),
            },
        )
        for width in size.points
    }


def measure(bench: Bench) -> Numbers:
    """Columns are log₁₀ of 6 · parameters · tokens, an estimate of floating-point operations."""
    found: Numbers = {}
    for label, cells in bench.each(over_time).items():
        each = 6 * parameters(bench.runs[label][0]) * TOKENS
        found[label] = {f"{math.log10(each * int(update)):.2f}": losses for update, losses in cells.items()}
    return found


def frontier(numbers: Numbers) -> list[tuple[float, float]]:
    """Compute and loss of every point that no cheaper point beats."""
    points = sorted((float(x), mean(values)) for cells in numbers.values() for x, values in cells.items())
    best: list[tuple[float, float]] = []
    for compute, loss in points:
        if not best or loss < best[-1][1]:
            best.append((compute, loss))
    return best


def rule(numbers: Numbers) -> Verdict:
    """Holds if at least four points are on the frontier, points of at least two sizes among them, and a
    straight line through their logarithms explains at least 90% of the variance. Holds here for one size if
    the frontier is that of one size alone."""
    points = frontier(numbers)
    if len(points) < 4:
        return fails(f"the frontier has {len(points)} points")
    exponent, explained = slope([x for x, _ in points], [math.log10(loss) for _, loss in points])
    places = {f"{x:.2f}" for x, _ in points}
    sizes = [label for label, cells in numbers.items() if places & set(cells)]
    told = f"loss ∝ compute^{exponent:.2f}, which explains {100 * explained:.0f}% of {len(points)} points"
    if explained < 0.9:
        return fails(told)
    return holds(told) if len(sizes) > 1 else holds_for(f"{sizes[0]} alone: {told}")


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "log₁₀ of floating-point operations, estimated", "validation loss", log_y=True)


EXPERIMENT = Experiment(
    name="compute-scaling",
    lecture=2,
    claim="The best loss falls with compute, as a power of it, and more compute wants larger models.",
    how="Transformers of several widths learn a made-up language at a constant rate. At every validation "
    "compute is taken as 6 × parameters × tokens.",
    literature="Kaplan et al. 2020: L ∝ C^−0.050; Hoffmann et al. 2022 on how to divide compute.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=320, seeds=3, pairs=4000, tests=100, longest=6, points=(8, 16, 32, 64)),
    full=Size(updates=960, seeds=3, pairs=20_000, tests=200, longest=12, points=(8, 16, 32, 64, 128)),
    cell="validation loss in nats a word, by the logarithm of compute",
)
