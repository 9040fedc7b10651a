"""The sinusoidal matrix for five places of width 4, and its dot products."""

import math

from dragoman.lab.bench import Bench
from dragoman.lab.draw import matrices
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds
from dragoman.lab.statistics import Numbers, averages, close, exact
from dragoman.nn.positions import sinusoids
from dragoman.probe.positions import sinusoidal_square

PLACES, WIDTH = 5, 4


def measure(_bench: Bench) -> Numbers:
    table = sinusoids(PLACES, WIDTH)
    square = sinusoidal_square(table)
    rows: dict[str, dict[str, float]] = {}
    for place in range(PLACES):
        rows[f"PE {place}"] = {f"dim {column}": float(table[place, column]) for column in range(WIDTH)}
    for place in range(PLACES):
        rows[f"product {place}"] = {f"place {other}": float(square[place, other]) for other in range(PLACES)}
    return exact(rows)


def rule(numbers: Numbers) -> Verdict:
    """Holds if every cell is sin or cos of place / 10000^(2i/4), computed anew here, to four digits; if every
    place has a product of 2 with itself; and if place 0 is more like place 1 than like 2, and like 2 than
    3."""
    found = averages(numbers)
    for place in range(PLACES):
        for column in range(WIDTH):
            angle = place / 10000 ** (2 * (column // 2) / WIDTH)
            formula = math.cos(angle) if column % 2 else math.sin(angle)
            if not close(found[f"PE {place}"][f"dim {column}"], formula):
                return fails(f"place {place}, dimension {column} is {found[f'PE {place}'][f'dim {column}']}")
    if not all(close(found[f"product {place}"][f"place {place}"], WIDTH / 2) for place in range(PLACES)):
        return fails("the products of places with themselves are not all 2")
    first = [found["product 0"][f"place {other}"] for other in range(4)]
    if sorted(first, reverse=True) != first:
        return fails(f"the products of place 0 do not fall: {first}")
    row = ", ".join(f"{value:.4f}" for value in found["PE 1"].values())
    return holds(f"place 1 is {row}; its product with place 0 is {first[1]:.4f}")


def figure(numbers: Numbers) -> Pictures:
    table = {name: cells for name, cells in numbers.items() if name.startswith("PE")}
    square = {name: cells for name, cells in numbers.items() if name not in table}
    return matrices({"PE": table, "PE · PEᵀ": square}, digits=4)


EXPERIMENT = Experiment(
    name="positions-by-hand",
    lecture=1,
    also=(2, 3),
    claim="PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same; near places have larger "
    "products.",
    how="The matrix for 5 places of width 4 and its products with itself, by the function that the models "
    "use.",
    literature="Vaswani et al. 2017, section 3.5, gives the formula.",
    measure=measure,
    rule=rule,
    figure=figure,
    remark="A printed table of this example can be checked: sin² + cos² = 1 for each pair, so every place "
    "has a product of d / 2 = 2 with itself. Tables for which that fails, and there are such ones on "
    "slides, have been computed with another angle. Place 0 is less like place 3 (0.0096) than like place 4 "
    "(0.3456): products do not fall for ever, since the first sine comes round.",
)
