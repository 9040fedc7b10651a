"""Figures of numbers: lines over a scale, bars, matrices with their values. All without pyplot."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from dragoman.evaluate.plot import COLOURS, DASHES, MARKERS, canvas, figure_files, signed_colours
from dragoman.lab.statistics import Numbers, averages, half_width, mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dragoman.lab.experiment import Pictures

_MOST_TICKS = 10
_MOST_WRAPPED, _WRAPPED = 4, 16
"""Up to so many long names of bars stand in several lines of so many letters; more of them are turned."""
_MOST_CELLS = 400
"""A matrix with more of them shows colours alone."""


def lines(
    numbers: Numbers, x: str, y: str, *, log_x: bool = False, log_y: bool = False, level: float | None = None
) -> "Pictures":
    """A line for each row over its columns, with 95% intervals; `level` is a dotted line to compare with."""
    with canvas() as figure_of:
        figure = figure_of(figsize=(6.4, 4.0), dpi=160, layout="constrained")
        axes = figure.add_subplot()
        draw_lines(axes, numbers, x, y)
        if log_x:
            names = list(dict.fromkeys(column for cells in numbers.values() for column in cells))
            axes.set_xscale("log", base=2)
            axes.set_xticks(_as_numbers(names), names)  # a new scale has new ticks
            axes.minorticks_off()
        if log_y:
            axes.set_yscale("log")
        if level is not None:
            axes.axhline(level, color="0.5", linewidth=0.8, linestyle=":")
        return figure_files(figure)


def draw_lines(axes: "Axes", numbers: Numbers, x: str, y: str) -> None:
    names = list(dict.fromkeys(column for cells in numbers.values() for column in cells))
    scale = _as_numbers(names)
    for number, (label, cells) in enumerate(numbers.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [scale[names.index(column)] for column in cells]
        middles = [mean(values) for values in cells.values()]
        for place, middle, values in zip(places, middles, cells.values(), strict=True):
            if len(values) > 1:
                wide = half_width(values)
                axes.plot([place, place], [middle - wide, middle + wide], color=colour, linewidth=1.0)
        axes.plot(
            *(places, middles),
            color=colour,
            linestyle=DASHES[number % len(DASHES)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=4.5,
            linewidth=1.4,
            label=label,
        )
    words = bool(scale) and isinstance(scale[0], int)
    if len(names) <= _MOST_TICKS or words:
        axes.set_xticks(scale, names)
    _dress(axes, x, y)
    if len(numbers) > 1:
        axes.legend(frameon=False, fontsize=8, handlelength=2.8)


def bars(numbers: Numbers, y: str, *, level: float | None = None) -> "Pictures":
    """A group of bars for each column, with a bar a row and its 95% interval."""
    with canvas() as figure_of:
        columns = list(dict.fromkeys(column for cells in numbers.values() for column in cells))
        groups = len(columns) * (len(numbers) + 1)
        figure = figure_of(
            figsize=(max(4.8, min(11.0, 0.42 * groups + 2)), 3.8), dpi=160, layout="constrained"
        )
        axes = figure.add_subplot()
        thick = 0.8 / len(numbers)
        for number, (label, cells) in enumerate(numbers.items()):
            places = [columns.index(column) + (number + 0.5) * thick - 0.4 for column in cells]
            spread = [half_width(values) if len(values) > 1 else 0.0 for values in cells.values()]
            heights = [mean(values) for values in cells.values()]
            colour = COLOURS[number % len(COLOURS)]
            axes.bar(places, heights, thick * 0.92, color=colour, label=label)
            axes.errorbar(places, heights, spread, fmt="none", ecolor="0.2", elinewidth=1.0, capsize=2.0)
        crowded = sum(map(len, columns)) > 60
        turned = crowded and len(columns) > _MOST_WRAPPED
        names = [fill(name, _WRAPPED) for name in columns] if crowded and not turned else columns
        where = "right" if turned else "center"
        axes.set_xticks(range(len(columns)), names, rotation=45 if turned else 0, ha=where)
        axes.axhline(0, color="0.2", linewidth=0.8)
        if level is not None:
            axes.axhline(level, color="0.5", linewidth=0.8, linestyle=":")
        _dress(axes, "", y)
        if len(numbers) > 1:
            room = max(1, min(len(numbers), 70 // (max(map(len, numbers)) + 6)))
            figure.legend(loc="outside upper center", ncols=room, frameon=False, fontsize=8)
        return figure_files(figure)


def matrices(panels: Mapping[str, Numbers], columns: int = 2, digits: int = 2) -> "Pictures":
    """A heat-map for each panel, with values in the cells if there is space."""
    with canvas() as figure_of:
        columns = min(columns, len(panels))
        rows = -(-len(panels) // columns)
        tables = [averages(numbers) for numbers in panels.values()]
        width = max(3.2, min(7.0, 1.2 + 0.52 * max(len(next(iter(table.values()))) for table in tables)))
        height = max(2.4, min(6.0, 0.9 + 0.34 * max(len(table) for table in tables)))
        figure = figure_of(figsize=(columns * width, rows * height), dpi=160, layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for axes, title, table in zip(grid.flat, panels, tables, strict=False):
            draw_matrix(axes, table, digits)
            axes.set_title(title, fontsize=9, loc="left")
        return figure_files(figure)


def draw_matrix(axes: "Axes", table: Mapping[str, Mapping[str, float]], digits: int = 2) -> None:
    names = list(dict.fromkeys(column for cells in table.values() for column in cells))
    values = np.array([[cells.get(name, np.nan) for name in names] for cells in table.values()])
    finite = values[np.isfinite(values)]
    most = float(np.abs(finite).max(initial=0.0)) or 1.0
    negative = bool((finite < 0).any())
    low = -most if negative else 0.0
    axes.imshow(values, cmap=signed_colours() if negative else "Blues", vmin=low, vmax=most, aspect="auto")
    if values.size <= _MOST_CELLS:
        for (row, column), value in np.ndenumerate(values):
            dark = np.isfinite(value) and abs(value) > 0.6 * most
            text = "" if np.isnan(value) else ("−∞" if value == -np.inf else f"{value:.{digits}f}")
            axes.text(
                *(column, row, text.replace("-", "−")),
                ha="center",
                va="center",
                fontsize=7,
                color="white" if dark else "0.15",
            )
    _ticks(axes, "x", names)
    _ticks(axes, "y", list(table))
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def _ticks(axes: "Axes", which: str, names: Sequence[str]) -> None:
    """Every name where they are few, else about ten of them."""
    step = max(1, -(-len(names) // (24 if which == "y" else 18)))
    step = (
        step if step == 1 else next(nice for nice in (5, 8, 10, 16, 20, 32, 50, 64, 100, 256) if nice >= step)
    )
    places = list(range(0, len(names), step))
    shown = [names[place] for place in places]
    if which == "x":
        turned = 45 if max(map(len, shown)) > 7 else 0
        axes.set_xticks(places, shown, fontsize=7.5, rotation=turned, ha="right" if turned else "center")
    else:
        axes.set_yticks(places, shown, fontsize=7.5)


def _as_numbers(names: Sequence[str]) -> list[Any]:
    """The columns as places on a scale; those that are not numbers stand at equal distances."""
    try:
        return [float(name) for name in names]
    except ValueError:
        return list(range(len(names)))


def _dress(axes: "Axes", x: str, y: str) -> None:
    """Intervals of shares may reach beyond what shares can be; the axes do not."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if y.startswith("percent"):
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, -3.0), min(high, 104.0))
    axes.grid(axis="y", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
