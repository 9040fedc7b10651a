"""The plot of search errors and model errors. matplotlib is imported only when a plot is drawn."""

from typing import TYPE_CHECKING

from dragoman.errors import UserError
from dragoman.evaluate.plot import COLOURS, DASHES, MARKERS, canvas, save
from dragoman.evaluate.search_errors import ErrorSummary, SearchErrors

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_search_errors(found: SearchErrors) -> dict[str, bytes]:
    """How often each beam misses the optimum, and the quality of the optimum, as a PNG and an SVG file."""
    overall = found.overall()
    if not overall:
        raise UserError("no optimum was proven, so there is nothing to draw; raise max_nodes")
    with canvas() as figure_of:
        figure = figure_of(figsize=(8.4, 4.4), dpi=200, layout="constrained")
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
        dash = DASHES[(number + 1) % len(DASHES)]  # distinguishable without colours; solid is for all
        colour, marker = _LINES[number % len(_LINES)], _MARKERS[number % len(_MARKERS)]
        _line(axes, rows, [row.missed for row in rows], label, f"{marker}{dash}", colour)
    rows = found.overall()
    _line(axes, rows, [row.missed for row in rows], f"all (n = {rows[0].sentences})", "o-")
    axes.set_title("Search errors: the beam misses the optimum", fontsize=9, loc="left")


def _draw_optimum(axes: "Axes", rows: list[ErrorSummary]) -> None:
    """All sentences, in black; a horizontal line for what does not depend on the beam."""
    _line(axes, rows, [row.worse for row in rows], "worse than the beam's by chrF", "v-")
    _line(axes, rows, [row.better for row in rows], "better than the beam's by chrF", "^--")
    axes.axhline(100 * rows[0].empty, label="empty", color="0.45", linestyle=":", linewidth=2.0)
    axes.set_title("Model errors: the optimum is worse, or empty", fontsize=9, loc="left")


def _line(
    axes: "Axes", rows: list[ErrorSummary], shares: list[float], label: str, style: str, colour: str = "0.1"
) -> None:
    """`style` is a marker and a dash as matplotlib writes them. Black is for all sentences."""
    of_all = colour == "0.1"
    axes.plot(
        [row.beam for row in rows],
        [100 * share for share in shares],
        style,
        label=label,
        color=colour,
        linewidth=2.0 if of_all else 1.3,
        markersize=6,
        markeredgecolor="white",
        markeredgewidth=0.6,
        zorder=4 if of_all else 3,
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
    # Below the axes, where it hides no line.
    axes.legend(
        frameon=False, fontsize=8, handlelength=3.2, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2
    )


_LINES = tuple(colour for colour in COLOURS if colour != "#000000")
_MARKERS = tuple(marker for marker in MARKERS if marker != "o")
