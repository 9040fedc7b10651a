"""The plots of a comparison by length and of search errors. matplotlib is imported only when a plot is drawn.

Figures are made without pyplot, so nothing keeps state or needs a display. The same comparison gives the same
bytes: no date, no random ids, no user settings of matplotlib.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman.errors import UserError, missing_extra
from dragoman.evaluate.lengths import Comparison, RunScores, interval
from dragoman.evaluate.search_errors import ErrorSummary, SearchErrors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
"""The colour-blind-safe palette of Okabe and Ito (2008), without yellow, which is too pale for lines."""
SIGNED = ("#8f4a00", "#e08a2e", "#fbfaf8", "#5a96d6", "#1b4a94")
"""Colours from negative to positive through 0: orange for less and blue for more, as on all pages."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":")
_SETTINGS = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so every machine has it
    "font.size": 9,
    "svg.fonttype": "none",  # text stays text: searchable and accessible
    "svg.hashsalt": "dragoman",
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_METADATA = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


@contextmanager
def canvas() -> "Iterator[type[Figure]]":
    """The Figure class, with our settings active while it is drawn and saved."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise missing_extra(str(error.name), "plots", "drawing a picture") from None

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        for name, value in _SETTINGS.items():
            matplotlib.rcParams[name] = value  # type: ignore[index]
        yield Figure


def signed_colours() -> "Colormap":
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("signed", SIGNED)


def figure_files(
    figure: "Figure", endings: Sequence[str] = ("png", "svg"), cropped: bool = False
) -> dict[str, bytes]:
    """The bytes of a PNG, SVG or PDF file; without empty margins if it is to be cropped."""
    box = {"bbox_inches": "tight", "pad_inches": 0.08} if cropped else {}
    saved: dict[str, bytes] = {}
    for ending in endings:
        stream = io.BytesIO()
        figure.savefig(stream, format=ending, metadata=_METADATA[ending], **box)
        saved[ending] = stream.getvalue()
    return saved


def draw_lengths(comparison: Comparison) -> dict[str, bytes]:
    """Scores over length buckets, one line per run, as the bytes of a PNG and an SVG file."""
    with canvas() as figure_of:
        labels = [run.label for run in comparison.runs]
        columns = max(1, min(len(labels), 78 // (max(map(len, labels)) + 8)))
        width = max(5.6, min(14.0, 0.95 * len(comparison.buckets) + 1.2))
        height = 3.7 + 0.19 * -(-len(labels) // columns)  # inches; the legend is outside the axes
        figure = figure_of(figsize=(width, height), dpi=200, layout="constrained")
        axes = figure.add_subplot()
        lines = [_draw_run(axes, run, number, len(labels)) for number, run in enumerate(comparison.runs)]
        _label_axes(axes, comparison)
        _add_legend(figure, lines, labels, columns)
        return figure_files(figure)


def _draw_run(axes: "Axes", run: RunScores, number: int, count: int) -> "Line2D":
    """A line with markers, and its intervals as bars. Runs are slightly shifted, so that no bar hides
    another."""
    spread = min(0.5, 0.12 * (count - 1))
    shift = spread * (number / (count - 1) - 0.5) if count > 1 else 0.0
    places = [place + shift for place in range(len(run.by_length))]
    colour = COLOURS[number % len(COLOURS)]
    for place, metric in zip(places, run.by_length, strict=True):
        if bounds := interval(metric):
            axes.plot([place, place], bounds, color=colour, linewidth=1.0, marker="_", markersize=4.5)
    (line,) = axes.plot(
        places,
        [metric.value for metric in run.by_length],
        color=colour,
        linestyle=DASHES[number % len(DASHES)],
        linewidth=1.5,
        marker=MARKERS[number % len(MARKERS)],
        markersize=5.5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        zorder=3,
    )
    return line


def _label_axes(axes: "Axes", comparison: Comparison) -> None:
    buckets = comparison.buckets
    ticks = [f"{bucket.label}\nn = {len(bucket.places)}" for bucket in buckets]
    axes.set_xticks(range(len(buckets)), ticks)
    axes.set_xlim(-0.5, len(buckets) - 0.5)
    example = comparison.runs[0].by_length[0]
    bars = "; bars: 95% bootstrap intervals" if interval(example) else ""
    axes.set_xlabel(f"length of the source in {comparison.unit}\n(n: number of sentences{bars})")
    axes.set_ylabel(f"{example.name} (0 to 100)")
    lowest, highest = axes.get_ylim()
    if lowest < highest / 3:  # close enough to show differences; there are no negative scores
        axes.set_ylim(bottom=0)
    axes.grid(axis="y", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", length=0)


def _add_legend(figure: "Figure", lines: list["Line2D"], labels: list[str], columns: int) -> None:
    """Above the axes. Labels are set afterwards, because a legend drops those with a leading underscore."""
    legend = figure.legend(
        lines, [""] * len(lines), loc="outside upper center", ncols=columns, frameon=False, handlelength=3.2
    )
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_parse_math(False)
        text.set_text(label)


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
        return figure_files(figure)


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
