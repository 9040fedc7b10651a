"""Scores 112 and 96 with d_k = 64: the lecture's numbers, by the code that every model here uses."""

import numpy as np

from dragoman.lab.bench import Bench
from dragoman.lab.draw import matrices
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds
from dragoman.lab.statistics import Numbers, averages, close, exact
from dragoman.probe.attention_steps import six_steps


def measure(_bench: Bench) -> Numbers:
    query = np.zeros(64)
    query[0] = 16.0
    keys = np.zeros((2, 64))
    keys[:, 0] = 7.0, 6.0  # 16 · 7 = 112, 16 · 6 = 96
    scaled, plain = six_steps(query, keys, np.eye(2)), six_steps(query, keys, np.eye(2), scale=1.0)
    rows = {
        "scores q · k": scaled.scores,
        "divided by √64 = 8": scaled.scaled,
        "softmax": scaled.weights,
        "softmax without the division": plain.weights,
    }
    return exact({name: {"word 1": row[0], "word 2": row[1]} for name, row in rows.items()})


def rule(numbers: Numbers) -> Verdict:
    """Holds if the scores 112 and 96 become 14 and 12, and those 0.88 and 0.12, to two digits."""
    found = averages(numbers)
    wanted = {"divided by √64 = 8": (14.0, 12.0), "softmax": (0.88, 0.12)}
    good = all(
        close(found[row]["word 1"], first, 0.005) and close(found[row]["word 2"], second, 0.005)
        for row, (first, second) in wanted.items()
    )
    left = found["softmax without the division"]["word 2"]
    told = f"softmax {found['softmax']['word 1']:.4f}; without the division word 2 is left with {left:.1e}"
    return holds(told) if good else fails(told)


def figure(numbers: Numbers) -> Pictures:
    weights = {name: cells for name, cells in numbers.items() if name.startswith("softmax")}
    scores = {name: cells for name, cells in numbers.items() if name not in weights}
    return matrices({"scores": scores, "weights": weights}, digits=2)


EXPERIMENT = Experiment(
    name="softmax-scale",
    lecture=1,
    also=(4,),
    claim="Scores of 112 and 96 become 14 and 12 after the division by √64, and 0.88 and 0.12 after the "
    "softmax.",
    how="A query and two keys of width 64 with these dot products go through the six steps of "
    "self-attention.",
    literature="Alammar 2018, The Illustrated Transformer: 112, 96 → 14, 12 → 0.88, 0.12.",
    measure=measure,
    rule=rule,
    figure=figure,
)
