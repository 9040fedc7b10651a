"""Heat-maps of weights: one with its words, or all heads of a kind side by side."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dragoman.evaluate.plot import canvas, figure_files, signed_colours
from dragoman.probe.figures.pieces import visible_spaces
from dragoman.probe.words import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

_CELL = 0.34  # inches
_NUMBERED = 16  # rows or columns up to which cells show their numbers
_LABELLED = 24  # up to which the small maps of a grid show their words
_SMALL = 0.5  # a map without a larger weight has a scale of its own, or it would be nearly blank
HIDDEN = "0.82"
WEIGHT = "attention weight"
UNITS = {
    "norms": "‖weight × value‖",
    "rollout": "share of the input",
    "gradient": "norm of the gradient",
    "integrated": "contribution to log p",
}
"""By figure: what the colours stand for, where it is not an attention weight."""


def draw_heatmap(
    view: View,
    endings: Sequence[str] = ("png", "svg"),
    rows: str = "",
    columns: str = "",
    signed: bool = False,
    note: str = "",
    unit: str = WEIGHT,
) -> dict[str, bytes]:
    """Rows downwards, columns across with their words above. `signed` centres the colours on 0, for
    attributions; `unit` is what the colours stand for."""
    count, width = view.weights.shape
    longest = max(map(len, view.rows), default=1)
    with canvas() as figure_of:
        tall = max(map(len, view.columns), default=1)
        size = (_CELL * width + 0.085 * longest + 1.5, _CELL * count + 0.085 * tall + 1.1)
        figure = figure_of(figsize=(max(4.2, size[0]), max(2.6, size[1])), dpi=200, layout="constrained")
        axes = figure.add_subplot()
        most = _most([view], signed)
        image = _draw(axes, view, signed, most)
        _label(axes, view, 9.0)
        _number(axes, view, most)
        axes.set_xlabel(columns)
        axes.set_ylabel(rows)
        figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02, aspect=25, label=unit)
        axes.set_title(view.title, fontsize=9, loc="left", pad=10)
        _note(figure, note)
        return figure_files(figure, endings, cropped=True)


def draw_heads(
    views: Sequence[Sequence[View]], endings: Sequence[str] = ("png", "svg"), note: str = ""
) -> dict[str, bytes]:
    """A grid of small heat-maps: a row per layer, a column per head, one colour scale."""
    layers, heads = len(views), max(map(len, views))
    first = views[0][0]
    labelled = max(first.weights.shape) <= _LABELLED
    count, width = first.weights.shape
    cell = min(0.16, 2.2 / max(count, width)) if labelled else 1.6 / max(count, width)
    with canvas() as figure_of:
        room = 0.075 * max(map(len, first.rows)) if labelled else 0.1
        above = 0.075 * max(map(len, first.columns)) if labelled else 0.1
        size = (heads * (cell * width + 0.15) + room + 0.6, layers * (cell * count + 0.35) + above + 0.8)
        figure = figure_of(figsize=(max(4.2, size[0]), max(2.4, size[1])), dpi=200, layout="constrained")
        grid = figure.subplots(layers, heads, squeeze=False)
        most = _most([each for row in views for each in row], signed=False)
        images: list[AxesImage] = []
        for layer, row in enumerate(views):
            for head in range(heads):
                axes = grid[layer][head]
                if head >= len(row):
                    axes.set_axis_off()
                    continue
                images.append(_draw(axes, row[head], signed=False, most=most))
                _label(axes, row[head], min(7.0, 60 * cell))
                if not labelled or head:
                    axes.set_yticks([])
                if not labelled or layer:
                    axes.set_xticks([])
                axes.set_xlabel(f"layer {layer + 1}, head {head + 1}", fontsize=7)
        figure.colorbar(images[0], ax=list(grid.flat), shrink=0.6, pad=0.02, aspect=25, label=WEIGHT)
        figure.suptitle(first.title.split(",")[0] + ", all heads", fontsize=9, x=0.01, ha="left")
        _note(figure, note)
        return figure_files(figure, endings)


def _draw(axes: "Axes", view: View, signed: bool, most: float) -> "AxesImage":
    from matplotlib import colormaps

    colours = (signed_colours() if signed else colormaps["Blues"]).with_extremes(bad=HIDDEN)
    masked = np.ma.masked_array(view.weights, view.hidden)
    return axes.imshow(masked, cmap=colours, vmin=-most if signed else 0.0, vmax=most, aspect="equal")


def _most(views: Sequence[View], signed: bool) -> float:
    """The end of the colour scale: the largest magnitude for signed values; for weights 1, or the largest one
    if all are small."""
    largest = max(float(np.abs(view.weights).max(initial=1e-12)) for view in views)
    return largest if signed or largest < _SMALL else max(1.0, largest)


def _label(axes: "Axes", view: View, size: float) -> None:
    axes.tick_params(length=0, top=False, bottom=False, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)
    # A $ in a text is a $.
    axes.set_xticks(
        range(len(view.columns)),
        list(map(visible_spaces, view.columns)),
        fontsize=size,
        rotation=90,
        parse_math=False,
    )
    axes.set_yticks(
        range(len(view.rows)), list(map(visible_spaces, view.rows)), fontsize=size, parse_math=False
    )
    if max(view.weights.shape) <= _LABELLED:  # white lines between the cells
        axes.set_xticks(np.arange(0.5, len(view.columns) - 1), minor=True)
        axes.set_yticks(np.arange(0.5, len(view.rows) - 1), minor=True)
        axes.grid(which="minor", color="white", linewidth=0.6)
        axes.tick_params(which="minor", length=0)


def _number(axes: "Axes", view: View, most: float) -> None:
    if max(view.weights.shape) > _NUMBERED:
        return
    for (row, column), value in np.ndenumerate(view.weights):
        if view.hidden[row, column] or abs(value) < 0.005:
            continue
        dark = abs(value) > 0.6 * most
        text = re.sub(r"^(-?)0\.", r"\1.", f"{value:.2f}").replace("-", "−")
        axes.text(column, row, text, ha="center", va="center", fontsize=6, color="white" if dark else "0.2")


def _note(figure: "Figure", note: str) -> None:
    figure.set_layout_engine("constrained", h_pad=0.1)  # words below the title do not touch it
    if note:
        figure.supxlabel(note, fontsize=8, color="0.35")
