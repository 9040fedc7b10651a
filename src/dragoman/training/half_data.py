"""The value of more data: a second run on every second pair, beside the first one.

It sees each pair as often, so it takes half the time, and is validated on the same pairs. Two points are
not much of a curve, so the extrapolation is given as a range.
"""

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path

from dragoman.config import to_dict
from dragoman.errors import UserError
from dragoman.evaluate.metrics import SCORES
from dragoman.files import beside, explained, read_regular, replace_file
from dragoman.runs.config import LOWER_IS_BETTER, RunConfig, refusal_of_other_config, training_differences
from dragoman.runs.directory import Run
from dragoman.training.budget import Clock, Since
from dragoman.training.display import Display, NoDisplay
from dragoman.training.report import REPORT
from dragoman.training.session import train_run

HALF = "half.json"
MAIN_SHARE = 2 / 3
"""Share of the minutes for the run on all data; the rest is for the half."""
_REPORT_LIMIT = 1 << 24
_TITLE = "## Half of the data"
_NOISE = 1.0
"""Points of metrics such as BLEU by which two runs may differ by chance."""


@dataclass(frozen=True)
class Worth:
    """Two points of the learning curve by data."""

    metric: str
    pairs: int
    whole: float
    half: float
    validated: int
    """Number of validation pairs."""

    @property
    def gain(self) -> float:
        """Gain of all data over half of it; above 0 if more data is better."""
        return (self.half - self.whole) if self.metric in LOWER_IS_BETTER else (self.whole - self.half)

    @property
    def chance(self) -> float:
        """The difference between two runs that is within chance."""
        if self.metric == "exact":
            share = min(max(self.whole / 100, 0.01), 0.99)
            return 200 * math.sqrt(2 * share * (1 - share) / max(1, self.validated))
        return _NOISE if self.metric in SCORES else 0.02 * abs(self.whole)

    def part(self) -> list[str]:
        """The section of report.md."""
        rows = ((f"{self.pairs // 2:,}", self.half), (f"{self.pairs:,}", self.whole))
        table = [f"| {pairs} | {value:.4g} |" for pairs, value in rows]
        head = [_TITLE, "", f"| pairs | {self.metric} on the validation set |", "| --- | --- |"]
        return [*head, *table, "", self.told(), ""]

    def told(self) -> str:
        """The interpretation in words."""
        found = f"All {self.pairs:,} pairs are worth {self.gain:.3g} more than half of them in {self.metric}"
        if self.gain <= self.chance:
            return (
                f"{found}, which may be chance (up to {self.chance:.2g}): "
                "more data of this kind would probably change little."
            )
        most = self.gain if self.metric not in SCORES else min(self.gain, 100 - self.whole)
        return (
            f"{found}. Twice as many would probably bring between {most / 2:.2g} and {most:.2g} more: such "
            "curves flatten, and these are two runs with one seed."
        )


def measure_half(run: Run, display: Display, clock: Clock) -> Run:
    """Train on half of the data and write down what that is worth. Returns the second run, whose outcome says
    whether it was stopped."""
    best = run.best
    if best is None or run.config.purpose != "translate":
        raise UserError("--half: it compares validations of a translator, and there are none")
    config = half_config(run.config)
    directory = beside(run.directory, ".half")
    if Run.exists(directory):
        second = Run.open(directory)
        if found := training_differences(second.config, config):
            raise refusal_of_other_config(second, found)
    else:
        second = Run.create(directory, config, run.prepared())
    display.line(f"half of the data: every second pair, in {directory}")
    outcome = train_run(second, NoDisplay(), clock=Since(clock))
    if outcome.exit_status or second.best is None:
        return second
    prepared = run.prepared()
    metric = run.config.train.metric
    limit = run.config.train.validate_sentences if metric in SCORES else len(prepared.valid)
    worth = Worth(
        metric, len(prepared.train), best["value"], second.best["value"], min(limit, len(prepared.valid))
    )
    _keep(run.directory, worth)
    display.line(worth.told())
    return second


def _keep(directory: Path, worth: Worth) -> None:
    """Store the result in its own file and, if there is a report, at its end."""
    path, report = directory / HALF, directory / REPORT
    with explained(path):
        replace_file(path, json.dumps(to_dict(worth), indent=1).encode())
    if not report.is_file():
        return
    with explained(report):
        before = read_regular(report, _REPORT_LIMIT).decode().partition(_TITLE)[0].rstrip("\n")
        replace_file(report, "\n".join([before, "", *worth.part()]).encode())


def half_config(config: RunConfig) -> RunConfig:
    """On every second pair, for half the time or updates: as many epochs."""
    train, schedule = config.train, config.schedule
    updates = None if train.max_updates is None else max(1, train.max_updates // 2)
    if schedule.total is not None and schedule.total == train.max_updates:
        schedule = replace(schedule, total=updates, warmup=schedule.warmup // 2)
    return replace(
        config,
        schedule=schedule,
        objective=replace(config.objective, every=2 * config.objective.every),
        train=replace(
            train,
            max_minutes=None if train.max_minutes is None else train.max_minutes / 2,
            max_updates=updates,
            tune_search=False,
            report=False,
        ),
    )
