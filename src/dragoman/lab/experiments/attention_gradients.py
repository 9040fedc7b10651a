"""Attention beside gradients: do both point to the same source words?"""

from statistics import fmean

import numpy as np

from dragoman.lab.bench import Bench
from dragoman.lab.draw import bars
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds, holds_for
from dragoman.lab.experiments import alignment_error
from dragoman.lab.looks import cross_weights, source_gradients
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import TaskPair
from dragoman.runs.directory import Run

CORRELATION, AGREE = "rank correlation", "same greatest word"
SHOWN = 25


def ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values)).astype(float)


def measure(bench: Bench) -> Numbers:
    def look(run: Run, pairs: list[TaskPair]) -> dict[str, float]:
        found: dict[str, list[float]] = {CORRELATION: [], AGREE: []}
        for source, target in pairs[:SHOWN]:
            words = len(source.split())
            weights = cross_weights(run, (source, target))
            gradients = source_gradients(run, (source, target))
            for row in range(len(target.split())):
                looked, moved = weights[row, :words], gradients[row, :words]
                found[CORRELATION].append(float(np.corrcoef(ranks(looked), ranks(moved))[0, 1]))
                found[AGREE].append(float(looked.argmax() == moved.argmax()))
        return {name: fmean(values) for name, values in found.items()}

    return bench.on_test(look)


def rule(numbers: Numbers) -> Verdict:
    """Holds if for both networks the rank correlation (Spearman) of weights and gradients over the source
    words is surely above 0.5 in the mean over target words. Holds here for the network for which it is."""
    good = [
        name
        for name, cells in numbers.items()
        if surely_greater(cells[CORRELATION], [0.5] * len(cells[CORRELATION]))
    ]
    told = ", ".join(
        f"{name} {mean(c[CORRELATION]):.2f} ({100 * mean(c[AGREE]):.0f}% same greatest word)"
        for name, c in numbers.items()
    )
    if len(good) == len(numbers):
        return holds(told)
    return holds_for(f"{good[0]}: {told}") if good else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return bars(numbers, "agreement of attention and gradients", level=0.5)


EXPERIMENT = Experiment(
    name="attention-gradients",
    lecture=5,
    also=(1,),
    claim="Attention shows which source words mattered: its weights agree with the gradients.",
    how="The runs of alignment-error: weights (mean over layers and heads) and norms of the gradients of "
    "each target word's log-probability by each source word, compared by rank.",
    literature="Jain & Wallace 2019, table 2: Kendall's τ mostly below 0.5; Wiegreffe & Pinter 2019 "
    "disagree on what that means.",
    settings=alignment_error.settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=alignment_error.EXPERIMENT.quick,
    full=alignment_error.EXPERIMENT.full,
    cell="rank correlation from −1 to 1; share of target words with the same greatest source word",
)
