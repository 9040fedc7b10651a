"""Ten places of width 64: the picture of the lectures, and how alike places are."""

from itertools import pairwise

import numpy as np

from dragoman.evaluate.plot import canvas, figure_files
from dragoman.lab.bench import Bench
from dragoman.lab.draw import draw_matrix
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds
from dragoman.lab.statistics import Numbers, averages, exact
from dragoman.nn.positions import sinusoids

PLACES, WIDTH = 10, 64


def measure(_bench: Bench) -> Numbers:
    table = sinusoids(PLACES, WIDTH).numpy()
    square = table @ table.T
    by_distance = {str(distance): float(np.diagonal(square, distance).mean()) for distance in range(PLACES)}
    spread = {str(d): float(np.ptp(np.diagonal(square, d))) for d in range(PLACES)}
    return exact({"mean product": by_distance, "spread of the products": spread})


def rule(numbers: Numbers) -> Verdict:
    """Holds if the product depends on the distance alone (spread below 10⁻⁹ at every distance) and falls
    with every step from distance 0 to 5."""
    found = averages(numbers)
    products = list(found["mean product"].values())[:6]
    if max(found["spread of the products"].values()) > 1e-9:
        return fails("places at one distance have different products")
    falls = all(near > far for near, far in pairwise(products))
    told = ", ".join(f"{value:.2f}" for value in products)
    return holds(f"by distance: {told}") if falls else fails(f"it does not fall: {told}")


def figure(_numbers: Numbers) -> Pictures:
    table = sinusoids(PLACES, WIDTH).numpy()
    with canvas() as figure_of:
        drawn = figure_of(figsize=(9.6, 3.4), dpi=160, layout="constrained")
        left, right = drawn.subplots(1, 2, width_ratios=[2.2, 1])
        for axes, values in ((left, table), (right, table @ table.T)):
            cells = {str(r): {str(c): float(v) for c, v in enumerate(row)} for r, row in enumerate(values)}
            draw_matrix(axes, cells, digits=0)
        left.set_xlabel("dimension")
        left.set_ylabel("place")
        right.set_xlabel("place")
        right.set_title("dot products", fontsize=9, loc="left")
        left.set_title("sinusoidal positions", fontsize=9, loc="left")
        return figure_files(drawn)


EXPERIMENT = Experiment(
    name="positions-picture",
    lecture=1,
    also=(2,),
    claim="The products of sinusoidal positions depend on their distance alone, and near places are more "
    "alike.",
    how=f"{PLACES} places of width {WIDTH}; products are averaged by distance.",
    literature="Vaswani et al. 2017, section 3.5: PE(pos + k) is a linear function of PE(pos) for any fixed "
    "k.",
    measure=measure,
    rule=rule,
    figure=figure,
    cell="products by distance",
)
