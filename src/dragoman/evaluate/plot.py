"""The plot of a comparison by length. matplotlib is imported only when a plot is drawn.

Figures are made without pyplot, so nothing keeps state or needs a display. The same comparison gives the same
bytes: no date, no random ids, no user settings of matplotlib.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman.errors import missing_extra
from dragoman.evaluate.lengths import Comparison, RunScores, interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
"""The colour-blind-safe palette of Okabe and Ito (2008), without yellow, which is too pale for lines."""
SIGNED = ("#8f4a00", "#e08a2e", "#fbfaf8", "#5a96d6", "#1b4a94")
"""From negative to positive, through 0: orange is less and blue is more, as on all pages."""
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


def save(
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
        return save(figure)


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
