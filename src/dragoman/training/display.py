"""Progress that a person can read: a live bar on a terminal, plain lines in a pipe, or nothing."""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from dragoman.evaluate.metrics import NAMES
from dragoman.runs.records import Sample

_OF_TASKS = ("f1", "precision", "recall", "macro_f1", "matthews", "pearson", "spearman", "exact_match")
"""Metrics between 0 and 1, in the order of display."""
_STAGES = {
    "hash": "checking whether the data are prepared already",
    "read": "reading the corpus",
    "learn vocabulary": "learning the vocabulary",
    "encode": "splitting the text into pieces",
    "encode valid": "splitting the validation set into pieces",
}
"""Descriptions of the stages of data preparation on the screen."""
_BETWEEN_STATUS = timedelta(seconds=5)
_WITHOUT_SAMPLES = "train.samples=0 leaves the samples out"
_MEANINGS = {
    "perplexity": "ppl: perplexity",
    "accuracy": "acc: correct next tokens",
    "free_loss": "forced, free: loss after the reference, after own output",
    "exact": "exact: % of outputs that are right",
}
"""Explanations of the numbers of a validation."""


@dataclass(frozen=True)
class UpdateStatus:
    """The numbers of one log line."""

    update: int
    total: int | None
    """Total number of updates, if known."""
    epoch: int
    loss: float
    """Cross-entropy, as on the validation set."""
    perplexity: float | None
    """None if the model does not predict text."""
    rate: float
    tokens_per_second: float
    seconds_left: float | None
    unit: str = "tok"
    objective: float | None = None
    """What training minimises, if it is more than the loss: with label smoothing, R-Drop and the like."""


class Display(Protocol):
    def tick(self, update: int, total: int | None) -> None:
        """Called after every update."""
        ...

    def status(self, status: UpdateStatus) -> None: ...
    def validation(
        self, update: int, metrics: dict[str, float], better: bool, samples: Sequence[Sample]
    ) -> None: ...
    def line(self, text: str) -> None: ...
    def table(self, title: str, rows: Sequence[tuple[str, str]]) -> None: ...
    def stage(self, stage: str, done: int, total: int | None) -> None:
        """Preparing: `done` of `total` in `stage`."""
        ...

    def close(self) -> None: ...


def make_display(quiet: bool) -> Display:
    if quiet:
        return NoDisplay()
    return Terminal() if sys.stdout.isatty() else Plain()


class NoDisplay:
    def tick(self, update: int, total: int | None) -> None: ...
    def status(self, status: UpdateStatus) -> None: ...
    def validation(
        self, update: int, metrics: dict[str, float], better: bool, samples: Sequence[Sample]
    ) -> None: ...
    def line(self, text: str) -> None: ...
    def table(self, title: str, rows: Sequence[tuple[str, str]]) -> None: ...
    def stage(self, stage: str, done: int, total: int | None) -> None: ...
    def close(self) -> None: ...


class Plain(NoDisplay):
    """One line an event with its time, flushed at once: for pipes, files and logs of batch systems. The
    numbers of updates come every few seconds; log.txt has all of them."""

    def __init__(self, now: Callable[[], datetime] = datetime.now) -> None:
        self._now = now
        self._stage = ""
        self._last_status: datetime | None = None
        self._explained = False

    def status(self, status: UpdateStatus) -> None:
        now = self._now()
        due = self._last_status is None or now - self._last_status >= _BETWEEN_STATUS
        if due or status.update == status.total:
            self._last_status = now
            self.line(status_line(status))

    def validation(
        self, update: int, metrics: dict[str, float], better: bool, samples: Sequence[Sample]
    ) -> None:
        self.line(validation_line(update, metrics, better))
        for sample in samples:
            for name, text in _sample_rows(sample):
                print(f"    {name}  {text}", flush=True)
        if not self._explained:
            self._explained = True
            for line in explanations(metrics, bool(samples)):
                print(f"    {line}", flush=True)

    def line(self, text: str) -> None:
        print(f"{self._now():%Y-%m-%d %H:%M:%S}  {text}", flush=True)

    def table(self, title: str, rows: Sequence[tuple[str, str]]) -> None:
        width = max(len(name) for name, _ in rows)
        print(title)
        for name, value in rows:
            print(f"  {name:<{width}}  {value}", flush=True)

    def stage(self, stage: str, done: int, total: int | None) -> None:  # noqa: ARG002
        if stage != self._stage:
            self._stage = stage
            self.line(f"{_STAGES.get(stage, stage)} …")


class Terminal:
    """A bar that stays at the foot of the screen; everything else scrolls by above it."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)
        self._bar = Progress(
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            console=self.console,
            auto_refresh=False,
        )
        self._task = self._bar.add_task("", total=None)
        self._numbers = Text("")
        self._live: Live | None = None
        self._explained = False

    def tick(self, update: int, total: int | None) -> None:
        of = f"/{total:,}" if total else ""
        self._show(f"update {update:,}{of}", update, total)

    def status(self, status: UpdateStatus) -> None:
        left = f"  left {duration(status.seconds_left)}" if status.seconds_left is not None else ""
        self._numbers = Text.assemble(
            f"epoch {status.epoch}  loss ",
            (f"{status.loss:.3f}", "bold"),
            f"{_perplexity(status)}  lr {status.rate:.1e}",
            f"  {_thousands(status.tokens_per_second)} {status.unit}/s{left}",
        )

    def validation(
        self, update: int, metrics: dict[str, float], better: bool, samples: Sequence[Sample]
    ) -> None:
        style = "green" if better else ""
        for line in _between_items(validation_line(update, metrics, better), self.console.width):
            self.console.print(Text(line, style=style))
        for sample in samples:
            for name, text in _sample_rows(sample):
                self.console.print(Text.assemble((f"    {name}  ", "dim"), text))  # it breaks between words
        if not self._explained:
            self._explained = True
            for line in explanations(metrics, bool(samples)):
                self.console.print(Text(f"    {line}", style="dim"))

    def line(self, text: str) -> None:
        self.console.print(Text(text), soft_wrap=True)

    def table(self, title: str, rows: Sequence[tuple[str, str]]) -> None:
        self._stop()
        table = Table(title=title, title_justify="left", title_style="bold", show_header=False, box=None)
        for name, value in rows:
            table.add_row(Text(name, style="dim"), Text(value))
        self.console.print(table)

    def stage(self, stage: str, done: int, total: int | None) -> None:
        of = f" of {total:,}" if total else ""
        self._show(f"{_STAGES.get(stage, stage)}  {done:,}{of}", done, total)

    def close(self) -> None:
        self._stop()

    def _show(self, text: str, done: int, total: int | None) -> None:
        if self._live is None:
            self._live = Live(
                console=self.console, refresh_per_second=8, transient=True, get_renderable=self._render
            )
            self._live.start()
        self._bar.update(self._task, description=text, completed=done, total=total)

    def _render(self) -> Group:
        return Group(self._bar, self._numbers)

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live, self._numbers = None, Text("")


def status_line(status: UpdateStatus) -> str:
    of = f"/{status.total}" if status.total else ""
    left = f"  left {duration(status.seconds_left)}" if status.seconds_left is not None else ""
    return (
        f"update {status.update}{of}  epoch {status.epoch}  loss {status.loss:.3f}"
        f"{_perplexity(status)}{_objective(status)}  lr {status.rate:.2e}"
        f"  {_thousands(status.tokens_per_second)} {status.unit}/s{left}"
    )


def validation_line(update: int, metrics: dict[str, float], better: bool) -> str:
    shown = [f"loss {metrics['loss']:.3f}"]
    if "perplexity" in metrics:
        shown.append(f"ppl {_short(metrics['perplexity'])}")
    if "accuracy" in metrics:
        shown.append(f"acc {100 * metrics['accuracy']:.1f}%")
    shown += [f"{name.replace('_', ' ')} {metrics[name]:.3f}" for name in _OF_TASKS if name in metrics]
    if "layers_scale" in metrics:
        shares = " ".join(f"{metrics[name]:.2f}" for name in metrics if name.startswith("layer_"))
        shown.append(f"layers {metrics['layers_scale']:.2f} × ({shares})")
    if "free_loss" in metrics:
        forced = f"{metrics['forced_loss']:.3f}"
        known = forced == f"{metrics['loss']:.3f}"  # the same sentences: nothing new
        shown.append(f"{'' if known else f'forced {forced} '}free {metrics['free_loss']:.3f}")
    if "word_perplexity" in metrics:
        shown.append(
            f"word ppl {_short(metrics['word_perplexity'])}  bits/byte {metrics['bits_per_byte']:.3f}"
        )
    if "next_sentence" in metrics:
        shown.append(f"next sentence {100 * metrics['next_sentence']:.1f}%")
    short = metrics.get("bleu") == 0 and metrics.get("exact", 0) > 0  # no output has the four words of BLEU
    shown += [
        f"{name} {metrics[key]:.1f}"
        for key, name in (NAMES | {"exact": "exact"}).items()
        if key in metrics and not (key == "bleu" and short)
    ]
    return f"valid at {update}  {'  '.join(shown)}{'  (best)' if better else ''}"


def explanations(metrics: dict[str, float], samples: bool) -> list[str]:
    """What stands below the first validation line: the meaning of its numbers."""
    told = "; ".join(meaning for name, meaning in _MEANINGS.items() if name in metrics)
    return [*([f"({told})"] if told else []), *([f"({_WITHOUT_SAMPLES})"] if samples else [])]


def _perplexity(status: UpdateStatus) -> str:
    return "" if status.perplexity is None else f"  ppl {_short(status.perplexity)}"


def _objective(status: UpdateStatus) -> str:
    """What training minimises, where it differs from the loss."""
    told = None if status.objective is None else f"{status.objective:.3f}"
    return "" if told is None or told == f"{status.loss:.3f}" else f"  objective {told}"


def _between_items(line: str, width: int) -> list[str]:
    """A line of items with two spaces between them, broken between items where it is too long."""
    lines: list[str] = []
    for item in line.split("  "):
        if lines and len(lines[-1]) + 2 + len(item) <= width:
            lines[-1] += f"  {item}"
        else:
            lines.append(item if not lines else f"    {item}")
    return lines


def duration(seconds: float) -> str:
    whole = max(0, round(seconds))
    hours, minutes = whole // 3600, whole % 3600 // 60
    if hours >= 48:
        return f"{hours / 24:.1f} days"
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def _sample_rows(sample: Sample) -> list[tuple[str, str]]:
    rows = (("source   ", sample.src), ("reference", sample.tgt), ("output   ", sample.out))
    return [(name, text if len(text) <= 200 else text[:199] + "…") for name, text in rows]


def _short(value: float) -> str:
    if not math.isfinite(value) or value >= 1e6:
        return f"{value:.1e}"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _thousands(value: float) -> str:
    return f"{value / 1000:.1f}k" if value >= 1000 else f"{value:.0f}"
