"""The variance of dot products by width, with the division and without."""

import numpy as np

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Size, Verdict, fails, holds
from dragoman.lab.statistics import Numbers, mean

WIDTHS = (4, 16, 64, 256, 1024)


def measure(bench: Bench) -> Numbers:
    plain: dict[str, list[float]] = {str(width): [] for width in WIDTHS}
    for seed in range(bench.size.seeds):
        random = np.random.default_rng(seed)
        for width in WIDTHS:
            queries, keys = random.standard_normal((2, bench.size.tests, width))
            plain[str(width)].append(float((queries * keys).sum(axis=1).var()))
    scaled = {width: [value / int(width) for value in values] for width, values in plain.items()}
    return {"q · k": plain, "q · k / √d": scaled}


def rule(numbers: Numbers) -> Verdict:
    """Holds if the variance of q · k is within 10% of d at every width, and that of q · k / √d within 10%
    of 1."""
    plain = [abs(mean(values) / int(width) - 1) for width, values in numbers["q · k"].items()]
    scaled = [abs(mean(values) - 1) for values in numbers["q · k / √d"].values()]
    worst = max(plain + scaled)
    told = f"the greatest deviation is {100 * worst:.1f}%"
    return holds(told) if worst <= 0.1 else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "width d", "variance", log_x=True, log_y=True, level=1.0)


EXPERIMENT = Experiment(
    name="dot-variance",
    lecture=1,
    also=(2,),
    claim="Dot products of vectors with d independent numbers of variance 1 have variance d; 1/√d brings it "
    "to 1.",
    how="Pairs of normal vectors of each width are multiplied, with five seeds.",
    literature="Vaswani et al. 2017, footnote 4: mean 0 and variance d_k.",
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(seeds=5, tests=10_000),
    full=Size(seeds=5, tests=100_000),
    cell="variance",
)
