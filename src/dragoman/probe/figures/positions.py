"""Positions: their table and their square side by side."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dragoman.evaluate.plot import canvas, figure_files, signed_colours
from dragoman.probe.positions import PositionReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_positions(found: PositionReport, endings: Sequence[str] = ("png", "svg")) -> dict[str, bytes]:
    with canvas() as figure_of:
        figure = figure_of(figsize=(10.4, 4.6), dpi=200, layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
        table, square = found.table.numpy(), found.square.numpy()
        _image(figure, left, table, True, float(np.abs(table).max()))
        left.set_xlabel(found.column_name)
        left.set_ylabel(found.row_name)
        _ticks(left.set_yticks, found.rows)
        _ticks(left.set_xticks, tuple(map(str, range(table.shape[1]))))
        left.set_title(f"positions: {found.kind}", fontsize=9, loc="left")
        _image(figure, right, square, bool(square.min() < 0), float(np.abs(square).max()))
        right.set_aspect("equal")
        _ticks(right.set_xticks, found.square_labels)
        _ticks(right.set_yticks, found.square_labels)
        right.set_xlabel(f"{found.row_name if found.kind == 'shaw' else 'position j'}")
        right.set_ylabel(f"{found.row_name if found.kind == 'shaw' else 'position i'}")
        right.set_title(found.square_name, fontsize=9, loc="left")
        return figure_files(figure, endings)


def _image(figure: "Figure", axes: "Axes", values: np.ndarray, signed: bool, most: float) -> None:
    lowest, colours = (-most, signed_colours()) if signed else (0.0, "Blues")
    image = axes.imshow(values, cmap=colours, vmin=lowest, vmax=most, aspect="auto", interpolation="nearest")
    axes.spines[:].set_visible(False)
    figure.colorbar(image, ax=axes, pad=0.02, aspect=30)


def _ticks(setter: Callable[[list[int], list[str]], object], labels: Sequence[str]) -> None:
    """Set at most a dozen tick labels, evenly spaced."""
    step = max(1, -(-len(labels) // 12))
    if step > 2:
        step = next(nice for nice in (5, 10, 20, 25, 50, 100, 250, 500, 1000) if nice >= step)
    zero = labels.index("0") if "0" in labels else 0
    places = [place for place in range(len(labels)) if (place - zero) % step == 0]
    setter(places, [labels[place] for place in places])
