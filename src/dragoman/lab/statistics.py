"""Means, intervals and differences over seeds, and the numbers that experiments hand to their rules."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

Numbers = dict[str, dict[str, list[float]]]
"""Row → column → one value a seed. A number that involves no chance is a list of one."""

_T = (math.inf, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""97.5% quantiles of Student's t by degrees of freedom, from 0 on."""


def mean(values: Sequence[float]) -> float:
    return fmean(values)


def half_width(values: Sequence[float]) -> float:
    """Half width of the 95% interval of the mean, by Student's t; infinite for a single value."""
    freedom = len(values) - 1
    if freedom < 1:
        return math.inf
    return (_T[freedom] if freedom < len(_T) else 1.96) * stdev(values) / math.sqrt(len(values))


def surely_greater(values: Sequence[float], others: Sequence[float], by: float = 0.0) -> bool:
    """The 95% interval of the differences, seed by seed, lies above `by`. One value each: just greater."""
    differences = [one - other for one, other in zip(values, others, strict=True)]
    if len(differences) == 1:
        return differences[0] > by
    return mean(differences) - half_width(differences) > by


def close(value: float, expected: float, tolerance: float = 5e-5) -> bool:
    return abs(value - expected) <= tolerance


def slope(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Slope of the least-squares line, and the share of the variance that it explains."""
    middle_x, middle_y = fmean(xs), fmean(ys)
    around = [(x - middle_x, y - middle_y) for x, y in zip(xs, ys, strict=True)]
    xx, xy, yy = (sum(products) for products in zip(*((x * x, x * y, y * y) for x, y in around), strict=True))
    return xy / xx, (xy * xy / (xx * yy) if yy else 1.0)


def exact(table: Mapping[str, Mapping[str, float]]) -> Numbers:
    """Numbers without chance."""
    return {row: {column: [float(value)] for column, value in cells.items()} for row, cells in table.items()}


def averages(numbers: Numbers) -> dict[str, dict[str, float]]:
    return {row: {column: mean(values) for column, values in cells.items()} for row, cells in numbers.items()}


def shown(values: Sequence[float]) -> str:
    """A cell of a table: the mean, and with several seeds the half width of its interval."""
    if len(values) < 2:
        return _short(values[0])
    return f"{_short(mean(values))} ± {_short(half_width(values))}"


def _short(value: float) -> str:
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}".replace("-", "−")
    digits = max(0, 3 - math.floor(math.log10(abs(value)))) if abs(value) < 1000 else 0
    text = f"{value:,.{min(digits, 4)}f}" if abs(value) >= 1e-3 else f"{value:.1e}"
    return text.replace("-", "−")
