"""Learning curves from what a run has written down (`metrics.jsonl`)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dragoman.errors import UserError
from dragoman.evaluate.plot import COLOURS, DASHES, canvas, figure_files
from dragoman.runs.records import LOSS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANELS: tuple[tuple[str, str, tuple[tuple[str, str, str], ...]], ...] = (
    ("loss", "cross-entropy (nats per piece)",
     (("train", LOSS["train"], "training"), ("valid", LOSS["valid"], "validation"),
      ("valid", "free_loss", "validation, own output as input"))),
    ("quality on the validation set", "0 to 100", (("valid", "bleu", "BLEU"), ("valid", "chrf", "chrF"),
                                                   ("valid", "exact", "exact match, %"))),
    ("learning rate", "learning rate", (("train", "rate", "learning rate"),)),
)  # fmt: skip
"""Title, unit, and for each line the kind of its records, their field, and its label."""


def draw_curves(
    records: Sequence[Mapping[str, Any]], endings: Sequence[str] = ("png", "svg"), title: str = ""
) -> dict[str, bytes]:
    """Panels for loss, quality and learning rate over updates; missing values are left out."""
    panels = [(name, unit, _lines(records, lines)) for name, unit, lines in _PANELS]
    panels = [panel for panel in panels if panel[2]]
    if not panels:
        raise UserError("curves: the run has written down no numbers yet; train it first")
    with canvas() as figure_of:
        figure = figure_of(figsize=(0.6 + 3.7 * len(panels), 3.4), dpi=200, layout="constrained")
        for axes, (name, unit, lines) in zip(
            figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
        ):
            _draw(axes, lines)
            axes.set_title(name, fontsize=9, loc="left")
            axes.set_xlabel("update")
            axes.set_ylabel(unit)
        figure.suptitle(title, fontsize=9, x=0.01, ha="left").set_parse_math(False)
        return figure_files(figure, endings)


_OVERLAID = (
    ("training loss", "train", LOSS["train"]),
    ("validation loss", "valid", LOSS["valid"]),
    ("validation loss, own output as input", "valid", "free_loss"),
    ("BLEU on the validation set", "valid", "bleu"),
    ("accuracy on the validation set", "valid", "accuracy"),
    ("learning rate", "train", "rate"),
)
"""Title, kind of the records and their field."""


def overlaid(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> "list[tuple[str, list[CurveLine]]]":
    """The panels for the records of several runs by label: a line for each run that has written the field."""
    panels = []
    for title, kind, field in _OVERLAID:
        found = [_lines(records, [(kind, field, label)]) for label, records in runs.items()]
        if lines := [line for own in found for line in own]:
            panels.append((title, lines))
    if not panels:
        raise UserError("curves: none of the runs has written down numbers yet; train them first")
    return panels


def draw_overlaid(panels: "Sequence[tuple[str, list[CurveLine]]]") -> dict[str, bytes]:
    """One panel per number, one line per run. A run has the same colour in all panels."""
    labels = list(dict.fromkeys(label for _, lines in panels for label, _, _ in lines))
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    with canvas() as figure_of:
        size = (0.6 + 3.7 * columns, 0.5 + 3.1 * rows)
        figure = figure_of(figsize=size, dpi=200, layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).flat
        for axes, (title, lines) in zip(grid, panels, strict=False):
            _draw(axes, lines, [labels.index(label) for label, _, _ in lines])
            axes.set_title(title, fontsize=9, loc="left")
            axes.set_xlabel("update")
        for axes in list(grid)[len(panels) :]:
            axes.set_visible(False)
        return figure_files(figure)


CurveLine = tuple[str, list[int], list[float]]


def _lines(records: Sequence[Mapping[str, Any]], asked: Sequence[tuple[str, str, str]]) -> list[CurveLine]:
    found: list[CurveLine] = []
    for kind, field, label in asked:
        own = [record for record in records if record.get("kind") == kind]
        points = [(record["update"], record[field]) for record in own if record.get(field) is not None]
        if points:
            found.append((label, [x for x, _ in points], [y for _, y in points]))
    return found


def _draw(axes: "Axes", lines: Sequence[CurveLine], looks: Sequence[int] = range(9)) -> None:
    """`looks` are the numbers of the colours and dashes of the lines."""
    for number, (label, updates, values) in zip(looks, lines, strict=False):
        axes.plot(
            updates,
            values,
            color=COLOURS[number % len(COLOURS)],
            linestyle=DASHES[number % len(DASHES)],
            linewidth=1.4,
            marker="o" if len(updates) <= 30 else None,
            markersize=3.5,
            label=label,
        )
    axes.grid(axis="y", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    if len(lines) > 1:
        axes.legend(frameon=False, fontsize=8, handlelength=2.8)
