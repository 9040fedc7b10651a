"""Learning curves from what a run has written down (`metrics.jsonl`)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dragoman.errors import UserError
from dragoman.evaluate.plot import COLOURS, DASHES, canvas, save
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
    """A panel each for loss, quality and rate, over updates; what a run never wrote is left out."""
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
        return save(figure, endings)


CurveLine = tuple[str, list[int], list[float]]


def _lines(records: Sequence[Mapping[str, Any]], asked: Sequence[tuple[str, str, str]]) -> list[CurveLine]:
    found: list[CurveLine] = []
    for kind, field, label in asked:
        own = [record for record in records if record.get("kind") == kind]
        points = [(record["update"], record[field]) for record in own if record.get(field) is not None]
        if points:
            found.append((label, [x for x, _ in points], [y for _, y in points]))
    return found


def _draw(axes: "Axes", lines: Sequence[CurveLine]) -> None:
    for number, (label, updates, values) in enumerate(lines):
        axes.plot(
            updates,
            values,
            color=COLOURS[number],
            linestyle=DASHES[number],
            linewidth=1.4,
            marker="o" if len(updates) <= 30 else None,
            markersize=3.5,
            label=label,
        )
    axes.grid(axis="y", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    if len(lines) > 1:
        axes.legend(frameon=False, fontsize=8, handlelength=2.8)
