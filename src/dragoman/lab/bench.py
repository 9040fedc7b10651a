"""Where experiments get their runs: trained once, shared between experiments, resumed where they stopped."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.config import apply_overrides
from dragoman.lab.experiment import Experiment, Setting, Size
from dragoman.lab.statistics import Numbers
from dragoman.lab.tasks import files_of, make
from dragoman.runs.directory import Run
from dragoman.training.api import execute
from dragoman.training.display import Display
from dragoman.training.draft import as_assignments
from dragoman.training.plan import make_plan


class Interrupted(Exception):
    """A run was stopped by a signal. The same command resumes it."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass
class Bench:
    """The runs of one experiment, and what it may need to measure them."""

    size: Size
    folder: Path
    """Folder of the whole lab."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    changes: Sequence[str] = ()
    """Fields that a person has set, for every run."""
    data: Path | None = None
    device: str = "auto"
    runs: dict[str, list[Run]] = field(default_factory=dict)
    """Runs by the label of the setting, one per seed."""

    def each(self, look: Callable[[Run], Mapping[str, float]]) -> Numbers:
        """The value of `look` in every run: one row per setting, one value per seed."""
        return {label: stacked([look(run) for run in runs]) for label, runs in self.runs.items()}

    def on_test(self, look: Callable[[Run, list[tuple[str, str]]], Mapping[str, float]]) -> Numbers:
        """Apply `look` to each run and the test sentences of its setting."""
        return {
            label: stacked([look(run, self.test_pairs(label)) for run in runs])
            for label, runs in self.runs.items()
        }

    def test_pairs(self, label: str) -> list[tuple[str, str]]:
        """The test sentences of a setting, at most as many as the size says."""
        setting = self.settings[label]
        if self.data is None or setting.task.kind != "language":
            return make(setting.task)["test"][: self.size.tests]
        from dragoman.data.config import SourceConfig
        from dragoman.data.formats import read_pairs

        files = files_of(setting.task, self.folder / "data", self.data)["test"]
        found = read_pairs(SourceConfig(tuple(files)), "src", "tgt")
        return [(pair.src, pair.tgt) for pair, _ in zip(found, range(self.size.tests), strict=False)]

    def train(self, tell: Callable[[str, int, int, int], Display]) -> None:
        """Train every setting with every seed. `tell(label, seed, number, count)` shows the progress."""
        count, number = len(self.settings) * self.size.seeds, 0
        for label in self.settings:
            self.runs[label] = []
        for seed in self.seeds:
            for label, setting in self.settings.items():
                number += 1
                display = tell(label, seed, number, count)
                try:
                    self.runs[label].append(self.train_one(setting, seed, display))
                finally:
                    display.close()

    def train_one(self, setting: Setting, seed: int, display: Display) -> Run:
        """The run of a setting and a seed, trained if it is not finished."""
        config, out = self.configuration(setting, seed), self.directory(setting, seed)
        if Run.exists(out) and is_finished(run := Run.open(out)):
            return run
        run = execute(make_plan([config], display, out=out), display)
        if run.outcome is not None and run.outcome.exit_status:
            raise Interrupted(run.outcome.exit_status)
        return run

    @property
    def seeds(self) -> range:
        return range(1, self.size.seeds + 1)

    def directory(self, setting: Setting, seed: int) -> Path:
        """Directory of a run. Its name follows from its configuration, so experiments share runs."""
        return self.folder / "runs" / run_name(setting, self.configuration(setting, seed))

    def configuration(self, setting: Setting, seed: int) -> dict[str, Any]:
        """The lab's recipe, what the setting changes in it, and what a person changes."""
        files = files_of(setting.task, self.folder / "data", self.data)
        plain = recipe(self.size, files, seed, self.device)
        if setting.task.kind == "text":
            plain["data"] = {part: [{"files": paths, "format": "text"}] for part, paths in files.items()}
        if setting.start is not None:
            plain["start"] = str(self.directory(self.settings[setting.start], seed))
            del plain["model"], plain["tokenizer"]
        plain = apply_overrides(plain, as_assignments(setting.fields))
        return apply_overrides(plain, list(self.changes))

    def describe(self) -> str:
        """All that the numbers depend on, beside the code."""
        configurations = {
            label: self.configuration(Setting(setting.task, setting.fields), 1)
            for label, setting in self.settings.items()
        }
        plain = [vars(self.size), configurations, list(self.changes), str(self.data or "")]
        return json.dumps(plain, sort_keys=True, default=str)


def recipe(size: Size, files: Mapping[str, list[str]], seed: int, device: str) -> dict[str, Any]:
    """A small model, quickly trained: what experiments change is told in their pages."""
    updates = max(1, size.updates)
    return {
        "seed": seed,
        "data": {part: [{"files": paths}] for part, paths in files.items()},
        "tokenizer": {"kind": "word", "vocab_size": 600, "min_frequency": 1},
        "model": {"kind": "transformer", "num_layers": 1, "model_dim": size.width, "num_heads": 4,
                  "ff_dim": 2 * size.width, "dropout": 0.0, "norm": "pre"},
        "objective": {"label_smoothing": 0.0},
        "optim": {"name": "adam", "rate": 3e-3},
        "schedule": {"name": "cosine", "warmup": min(30, updates // 4)},
        "train": {"max_updates": updates, "batch_tokens": 1024, "log_every": max(1, updates // 10),
                  "validate_every": updates, "validate_sentences": 0, "save_every": updates, "keep": 2,
                  "samples": 0, "device": device},
        "search": {"beam": 1},
    }  # fmt: skip


def rnn(size: Size, **fields: Any) -> dict[str, Any]:
    """Fields that make the recipe's model a recurrent one."""
    return {"model": {"kind": "rnn", "model_dim": size.width, "dropout": 0.0, **fields}}


def run_name(setting: Setting, config: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode()).hexdigest()
    return f"{setting.task.kind}-{config.get('model', {}).get('kind', 'started')}-{digest[:10]}"


def is_finished(run: Run) -> bool:
    """Its newest checkpoint is of its last update. A model that counts has one checkpoint."""
    last, updates = run.last, run.config.train.max_updates
    if last is None or run.config.counted:
        return last is not None
    return run.best is not None and updates is not None and last.isdigit() and int(last) >= updates


def stacked(looks: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """One list a column, in the order of the seeds; what one seed lacks is left out."""
    return {
        column: [float(look[column]) for look in looks]
        for column in looks[0]
        if all(column in look for look in looks)
    }


def open_bench(
    experiment: Experiment, size: Size, folder: Path, changes: Sequence[str], data: Path | None, device: str
) -> Bench:
    settings = experiment.settings(size) if experiment.settings else {}
    return Bench(size, folder, settings, changes, data, device)
