"""How alike places are to trained models, by the kind of their positions."""

import numpy as np

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds, holds_for
from dragoman.lab.experiments import longer_than_training
from dragoman.lab.looks import translator_of
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.probe.positions import positions_of
from dragoman.runs.directory import Run


def measure(bench: Bench) -> Numbers:
    length = bench.size.longest

    def look(run: Run) -> dict[str, float]:
        """Of places that were trained, as a share of the range between the greatest and the smallest."""
        square = positions_of(translator_of(run, "cpu").model, length).square.numpy()
        ahead = [float(np.diagonal(square, distance).mean()) for distance in range(length - 1)]
        low, wide = min(ahead), max(ahead) - min(ahead)
        return {str(distance): (value - low) / (wide or 1.0) for distance, value in enumerate(ahead)}

    return bench.each(look)


def rule(numbers: Numbers) -> Verdict:
    """Holds if for every kind places at distance 1 are surely more alike than those at distance 4. Holds
    here for the kinds for which they are."""
    near = [kind for kind, cells in numbers.items() if surely_greater(cells["1"], cells["4"])]
    told = ", ".join(f"{kind} {mean(c['1']):.2f} and {mean(c['4']):.2f}" for kind, c in numbers.items())
    told = f"at distance 1 and 4: {told}"
    if len(near) == len(numbers):
        return holds(told)
    return holds_for(f"{' and '.join(near)}; {told}") if near else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "distance of two places", "how alike, from least to most")


EXPERIMENT = Experiment(
    name="position-similarity",
    lecture=1,
    claim="Near places are more alike than far ones, for positions that are given and for those that are "
    "learnt.",
    how="The encoders of longer-than-training: products of places (T5: the mean bias) by distance, between "
    "the least and the greatest.",
    literature="Wang & Chen 2020, figure 1: so for BERT and sinusoids, less clearly for GPT-2.",
    settings=longer_than_training.settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=longer_than_training.EXPERIMENT.quick,
    full=longer_than_training.EXPERIMENT.full,
    cell="how alike places are, from 0 to 1, by distance",
)
