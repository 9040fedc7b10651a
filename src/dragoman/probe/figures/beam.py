"""The tree of a recorded beam search: a column for each step, its candidates from best to worst."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.decode.search.trace import Candidate, Trace
from dragoman.errors import UserError
from dragoman.evaluate.plot import COLOURS, canvas, figure_files
from dragoman.probe.figures.pieces import visible_spaces

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BEST, KEPT, ENDED, LIVE, LEFT = COLOURS[0], "0.3", COLOURS[2], "0.45", "0.62"  # as in `drawing/tree.js`
_NAMES = {"kept": "kept", "ended": "ended", "cut": "ended by the length limit", "pruned": "pruned",
          "stopped": "live when the search was done"}  # fmt: skip
_FATES = {"kept": KEPT, "ended": ENDED, "cut": ENDED, "pruned": LEFT, "stopped": LIVE}


def best_path(trace: Trace, tokens: Sequence[int]) -> list[int]:
    """Which candidate of each step the hypothesis of these tokens (with `</s>`) goes through."""
    for step in range(len(trace.steps)):
        for index, found in enumerate(trace.steps[step]):
            if found.fate in ("ended", "cut"):
                path = trace.path(step, index)
                if [each.token for each in path] == list(tokens):
                    return _indices(trace, step, index)
    return []


def _indices(trace: Trace, step: int, index: int) -> list[int]:
    found = []
    while step >= 0:
        found.append(index)
        index, step = trace.steps[step][index].parent, step - 1
    return found[::-1]


def draw_beam(
    trace: Trace, tokens: Sequence[int], endings: Sequence[str] = ("png", "svg"), title: str = ""
) -> dict[str, bytes]:
    """`tokens`, with `</s>`, are those of the hypothesis to be shown in colour."""
    if not trace.steps:
        raise UserError("beam: nothing was searched, so there is no tree to draw")
    path = best_path(trace, tokens)
    longest = max(len(_text(found)) for step in trace.steps for found in step)
    column, tall = max(1.0, 0.085 * longest + 0.45), max(map(len, trace.steps))
    with canvas() as figure_of:
        size = (max(5.0, column * len(trace.steps) + 0.6), 0.36 * tall + 1.3)
        figure = figure_of(figsize=size, dpi=200 if size[0] < 30 else 100, layout="constrained")
        axes = figure.add_subplot()
        for number, step in enumerate(trace.steps):
            for index, found in enumerate(step):
                chosen = number < len(path) and path[number] == index
                colour = BEST if chosen else _FATES[found.fate]
                if number:
                    before = trace.steps[number - 1][found.parent]
                    start = (number - 1 + _half_width(before) / column, found.parent)
                    end = (number - _half_width(found) / column, index)
                    axes.plot(
                        *zip(start, end, strict=True), color=colour, linewidth=1.6 if chosen else 0.7,
                        zorder=3 if chosen else 1,
                    )  # fmt: skip
                _box(axes, number, index, found, colour, chosen)
        axes.set_xlim(-0.5, len(trace.steps) - 0.5)
        axes.set_ylim(tall - 0.4, -0.6)
        axes.set_xticks(range(len(trace.steps)), [str(number + 1) for number in range(len(trace.steps))])
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        axes.set_xlabel("step; below each piece the sum of its log-probabilities, best on top")
        figure.suptitle(title, fontsize=9, x=0.01, ha="left").set_parse_math(False)
        _legend(figure, {found.fate for step in trace.steps for found in step}, bool(path))
        return figure_files(figure, endings)


def _box(axes: "Axes", step: int, index: int, found: Candidate, colour: str, chosen: bool) -> None:
    text = axes.text(
        step, index - 0.12, _text(found), ha="center", va="center", fontsize=8,
        color=colour if chosen or found.fate != "pruned" else "0.45",
        fontweight="bold" if chosen else "normal", zorder=4,
    )  # fmt: skip
    text.set_parse_math(False)
    axes.text(
        step,
        index + 0.24,
        f"{found.sum + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−"),
        ha="center",
        va="center",
        fontsize=5.5,
        color="0.4",
    )


def _half_width(found: Candidate) -> float:
    """Half the width of a label in inches, with a margin."""
    return 0.045 * max(3, len(_text(found))) + 0.08


def _text(found: Candidate) -> str:
    return str(found.token) if found.piece is None else visible_spaces(found.piece)


def _legend(figure: "Figure", fates: set[str], has_path: bool) -> None:
    from matplotlib.lines import Line2D

    named = [("the translation", BEST)] if has_path else []
    named += [(name, _FATES[fate]) for fate, name in _NAMES.items() if fate in fates]
    lines = [Line2D([], [], color=colour, linewidth=1.6) for _, colour in named]
    names = [name for name, _ in named]
    figure.legend(lines, names, loc="outside lower left", ncols=len(named), frameon=False, fontsize=7.5)
