"""The picture of search errors and model errors. matplotlib is imported when a picture is drawn."""

from typing import TYPE_CHECKING

from dragoman.errors import UserError
from dragoman.evaluate.plot import COLOURS, MARKERS, canvas, save
from dragoman.evaluate.search_errors import Row, SearchErrors

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_search_errors(found: SearchErrors) -> dict[str, bytes]:
    """How often each beam misses the optimum, and what the optimum is worth, as a PNG and an SVG file."""
    overall = found.overall()
    if not overall:
        raise UserError("no optimum was proven, so there is nothing to draw; raise max_nodes")
    with canvas() as figure_of:
        figure = figure_of(figsize=(8.4, 3.9), dpi=200, layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        right.tick_params(labelleft=True)
        _draw_misses(left, found)
        _draw_optimum(right, overall)
        for axes in (left, right):
            _label(axes, found.beams)
        proven = len(found.sentences) - found.unproven
        apart = f"; {found.unproven} not proven, left out" if found.unproven else ""
        note = f"{proven} sentences whose optimum is proven{apart}; {found.ranked_by}"
        figure.supxlabel(note, fontsize=8, color="0.35")
        return save(figure)


def _draw_misses(axes: "Axes", found: SearchErrors) -> None:
    """All sentences in black; the lengths, short to long, in colours."""
    for number, rows in enumerate(found.by_length()):
        label = f"{rows[0].bucket} pieces (n = {rows[0].sentences})"
        _line(axes, rows, [row.missed for row in rows], label, number)
    rows = found.overall()
    _line(axes, rows, [row.missed for row in rows], f"all (n = {rows[0].sentences})", None)
    axes.set_title("Search errors: the beam misses the optimum", fontsize=9, loc="left")


def _draw_optimum(axes: "Axes", rows: list[Row]) -> None:
    _line(axes, rows, [row.worse for row in rows], "worse than the beam's by chrF", 1)
    _line(axes, rows, [row.better for row in rows], "better than the beam's by chrF", 0)
    axes.axhline(100 * rows[0].empty, label="empty", color=COLOURS[3], linestyle="--")  # for every beam
    axes.set_title("The optimum is … (worse or empty: model errors)", fontsize=9, loc="left")


def _line(axes: "Axes", rows: list[Row], shares: list[float], label: str, number: int | None) -> None:
    """`number` chooses colour and marker; None is for the line that sums up the others."""
    axes.plot(
        [row.beam for row in rows],
        [100 * share for share in shares],
        label=label,
        color="0.1" if number is None else _LINES[number % len(_LINES)],
        linewidth=2.2 if number is None else 1.3,
        marker="o" if number is None else MARKERS[number % len(MARKERS)],
        markersize=5.5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        zorder=4 if number is None else 3,
        clip_on=False,
    )


def _label(axes: "Axes", beams: tuple[int, ...]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xlim(beams[0] / 1.15, beams[-1] * 1.15)
    axes.set_xticks(beams, [str(beam) for beam in beams])
    axes.minorticks_off()
    axes.set_xlabel("beam")
    axes.set_ylabel("% of sentences")
    axes.set_ylim(0, max(5.0, axes.get_ylim()[1]))
    axes.grid(axis="y", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=8, handlelength=2.4)


_LINES = tuple(colour for colour in COLOURS if colour != "#000000")
