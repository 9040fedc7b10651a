"""Tails of the gradient noise: how far single batches are from the mean of all of them."""

from statistics import fmean

import numpy as np

from dragoman.lab.bench import Bench, rnn
from dragoman.lab.draw import bars
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import noise_norms
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task, TaskPair
from dragoman.runs.directory import Run

TRANSFORMER, LSTM = "Transformer", "LSTM, attention"
KURTOSIS, TAIL = "kurtosis", "99th percentile / median"
BATCH = 8


def settings(size: Size) -> dict[str, Setting]:
    task = Task("language", size.pairs, longest=size.longest, tests=size.tests)
    return {TRANSFORMER: Setting(task), LSTM: Setting(task, rnn(size))}


def measure(bench: Bench) -> Numbers:
    def look(run: Run, pairs: list[TaskPair]) -> dict[str, float]:
        norms = np.array(noise_norms(run, pairs, BATCH))
        away = norms - norms.mean()
        return {
            KURTOSIS: float(fmean(away**4) / max(fmean(away**2) ** 2, 1e-30)),
            TAIL: float(np.quantile(norms, 0.99) / np.median(norms)),
        }

    return bench.on_test(look)


def rule(numbers: Numbers) -> Verdict:
    """Holds if the kurtosis of the norms of the noise is surely above 3, which is that of a normal
    distribution, for the Transformer, and surely greater than for the LSTM. Holds here for both networks if
    it is above 3 for both and not surely greater for the Transformer."""
    ours, theirs = numbers[TRANSFORMER][KURTOSIS], numbers[LSTM][KURTOSIS]
    told = ", ".join(f"{label} {mean(cells[KURTOSIS]):.1f}" for label, cells in numbers.items())
    normal = [3.0] * len(ours)
    if not surely_greater(ours, normal):
        return fails(f"kurtosis: {told}")
    if surely_greater(ours, theirs):
        return holds(f"kurtosis: {told}")
    if surely_greater(theirs, normal):
        return holds_for(f"both networks; kurtosis: {told}")
    return holds_for(f"the Transformer, if not surely more than for the LSTM; kurtosis: {told}")


def figure(numbers: Numbers) -> Pictures:
    return bars(numbers, "of the norms of the gradient noise", level=3.0)


EXPERIMENT = Experiment(
    name="gradient-noise",
    lecture=2,
    claim="The gradient noise of Transformers is heavy-tailed, more than that of other networks.",
    how="Two trained networks; the gradient of each of many batches of eight sentences less the mean of "
    "all; the norms of these differences are described by kurtosis and quantiles.",
    literature="Zhang et al. 2020, figure 1: heavy tails for BERT, not for ResNet; Kunstner et al. 2023: "
    "noise does not explain why Adam is better.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=150, seeds=3, pairs=2000, tests=800, longest=6, width=32),
    full=Size(updates=400, seeds=5, pairs=10_000, tests=1600, longest=12),
    cell="of the norms of the gradient noise",
)
