"""Simpler ways to number places, and what each lacks: counting, shares of the length, one circle."""

import math

import numpy as np

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds
from dragoman.lab.statistics import Numbers, averages, exact
from dragoman.nn.positions import sinusoids

COUNT, SHARE, CIRCLE, WAVES = "count: 0, 1, 2 …", "share of the length", "one circle", "sinusoids"
LENGTHS = (10, 1000)
PERIOD, WIDTH, SHOWN = 20, 64, 40
"""Places of one turn of the circle, width of the sinusoids, places of the figure."""


def places(kind: str, length: int) -> np.ndarray:
    """The vectors of the places of a text of this length, one a row."""
    numbers = np.arange(length, dtype=np.float64)
    if kind == COUNT:
        return numbers[:, None]
    if kind == SHARE:
        return numbers[:, None] / length
    if kind == CIRCLE:
        angles = 2 * math.pi * numbers / PERIOD
        return np.stack([np.sin(angles), np.cos(angles)], axis=1)
    return sinusoids(length, WIDTH).numpy().astype(np.float64)


def measure(_bench: Bench) -> Numbers:
    found: dict[str, dict[str, float]] = {}
    for kind in (COUNT, SHARE, CIRCLE, WAVES):
        row: dict[str, float] = {}
        for length in LENGTHS:
            vectors = places(kind, length)
            norms = (vectors**2).sum(axis=1)
            squares = norms[:, None] + norms[None] - 2 * vectors @ vectors.T
            apart = np.sqrt(squares[np.triu_indices(length, 1)].clip(min=0))
            row[f"largest, n = {length}"] = float(np.sqrt(norms.max()))
            row[f"nearest two, n = {length}"] = float(apart.min())
        found[kind] = row
    return exact(found)


def rule(numbers: Numbers) -> Verdict:
    """Holds if from n = 10 to n = 1000 the largest vector of counting grows more than 50-fold, the nearest
    two shares come more than 50 times as near, two places on the circle come within 10⁻⁶ of each other,
    and sinusoids keep their size to 1% and any two of their places 0.1 apart."""
    found = averages(numbers)
    near, far = (f"largest, n = {length}" for length in LENGTHS)
    few, many = (f"nearest two, n = {length}" for length in LENGTHS)
    grows = found[COUNT][far] / found[COUNT][near]
    comes_near = found[SHARE][few] / found[SHARE][many]
    size = found[WAVES][far] / found[WAVES][near]
    told = (
        f"at n = 1000 the largest count is {found[COUNT][far]:.0f}, the nearest two shares are "
        f"{found[SHARE][many]:.3f} apart, those on the circle {found[CIRCLE][many]:.3f}, "
        f"the sinusoids' {found[WAVES][many]:.2f}"
    )
    lacking = grows > 50 and comes_near > 50 and found[CIRCLE][many] < 1e-6
    return holds(told) if lacking and abs(size - 1) < 0.01 and found[WAVES][many] > 0.1 else fails(told)


def figure(_numbers: Numbers) -> Pictures:
    """The distance of each place from the first one, in units of the largest distance."""
    table: dict[str, dict[str, float]] = {}
    for kind in (COUNT, CIRCLE, WAVES):
        vectors = places(kind, SHOWN)
        apart = np.linalg.norm(vectors - vectors[0], axis=1)
        table[kind] = {str(place): float(value) for place, value in enumerate(apart / apart.max())}
    return lines(exact(table), "place", "distance from place 0, largest = 1")


EXPERIMENT = Experiment(
    name="naive-positions",
    lecture=3,
    also=(1,),
    claim="Places that are counted grow with the text and a circle repeats itself; several wavelengths do "
    "neither.",
    how=f"Places are given as their number, as their share of the length, as a point on a circle of {PERIOD} "
    f"places, and as sinusoids of width {WIDTH}; the largest vector and the nearest two are sought at two "
    "lengths.",
    literature="Vaswani et al. 2017, section 3.5: wavelengths from 2π to 10000 · 2π. Rohrer 2021 adds a "
    "«circular wiggle» to the words.",
    measure=measure,
    rule=rule,
    figure=figure,
    cell="Euclidean norm or distance",
    remark="Shares of the length stay below 1, but the same place has another number in a longer text, which "
    "a decoder does not know beforehand. Their distances from place 0 lie on the line of counting, and are "
    "left out of the figure.",
)
