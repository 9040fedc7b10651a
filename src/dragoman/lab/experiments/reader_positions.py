"""How alike the learnt positions of a BERT and a GPT are, by distance."""

import numpy as np

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.experiments import pre_training
from dragoman.lab.looks import tensor_of
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task
from dragoman.runs.directory import Run

BLOCK, FAR = 32, "8"
"""Pieces of an example: later places were never trained."""


def settings(size: Size) -> dict[str, Setting]:
    shape = {"num_layers": 2, "model_dim": size.width, "num_heads": 4, "ff_dim": 2 * size.width}
    gpt = {"model": {"kind": "gpt", **shape, "dropout": 0.0, "max_positions": 64}}
    text = Task("text", size.pairs, longest=6, tests=size.tests)
    return {
        "BERT": pre_training.settings(size)[pre_training.FIRST],
        "GPT": Setting(text, {**gpt, "objective.name": "causal", "objective.block": BLOCK}),
    }


def measure(bench: Bench) -> Numbers:
    def look(run: Run) -> dict[str, float]:
        """Mean cosine of two places, after the mean vector of all places is taken away."""
        places = tensor_of(run, "positions.weight")[1 : BLOCK - 1]
        places = places - places.mean(axis=0)
        places /= np.linalg.norm(places, axis=1, keepdims=True)
        square = places @ places.T
        return {str(distance): float(np.diagonal(square, distance).mean()) for distance in range(1, 13)}

    return bench.each(look)


def rule(numbers: Numbers) -> Verdict:
    """Holds if for both networks places at distance 1 are surely more alike than those at distance 8, by more
    than 0.05. Holds here for the network for which they are."""
    near = [name for name, cells in numbers.items() if surely_greater(cells["1"], cells[FAR], by=0.05)]
    told = ", ".join(f"{name} {mean(c['1']):.2f} and {mean(c[FAR]):.2f}" for name, c in numbers.items())
    told = f"cosine at distance 1 and {FAR}: {told}"
    if len(near) == len(numbers):
        return holds(told)
    return holds_for(f"{near[0]}; {told}") if near else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "distance of two places", "mean cosine", level=0.0)


EXPERIMENT = Experiment(
    name="reader-positions",
    lecture=1,
    also=(4,),
    claim="The positions that BERT and GPT learn are more alike for near places than for far ones.",
    how="A small BERT and a small GPT are pre-trained on a made-up language in pieces of 32; cosines of "
    "their learnt positions are taken by distance.",
    literature="Wang & Chen 2020, figure 1: plainly so for BERT, wave-like for GPT-2.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=pre_training.EXPERIMENT.quick,
    full=pre_training.EXPERIMENT.full,
    cell="mean cosine of two places, by distance",
    remark="First vectors are random, with cosines around 0 at every distance.",
)
