"""Running experiments, and what they leave in the folder of the lab.

    lab/NAME/NAME.md  NAME.html  figure.png  figure.svg  numbers.json     the page of an experiment
    lab/book.html                                                         all pages that are there
    lab/runs/  lab/data/                                                  shared between experiments

A finished run is not trained again, and numbers of the same configuration are not measured again.
"""

import hashlib
import inspect
import json
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import dragoman
from dragoman.files import make_directories, replace_file
from dragoman.lab.bench import Bench, open_bench
from dragoman.lab.catalogue import all_experiments
from dragoman.lab.experiment import LECTURES, Experiment
from dragoman.lab.page import ExperimentReport, article, html_page, markdown
from dragoman.lab.statistics import Numbers
from dragoman.plain import read_json
from dragoman.runs.directory import Run
from dragoman.runs.records import read_file
from dragoman.training.display import Display

Tell = Callable[[str, int, int, int], Display]


@dataclass(frozen=True)
class Lab:
    """Directory and options of a lab session."""

    folder: Path
    quick: bool = False
    changes: Sequence[str] = ()
    data: Path | None = None
    device: str = "auto"

    def run(self, experiment: Experiment, tell: Tell) -> ExperimentReport:
        """Train what is missing, measure, decide, and write the page."""
        size = experiment.size(self.quick)
        bench = open_bench(experiment, size, self.folder, self.changes, self.data, self.device)
        bench.train(tell)
        numbers, seconds = self._measured(experiment, bench)
        pictures = experiment.figure(numbers)
        rows = [
            (label, seed, run.config.train.max_updates or 1, elapsed(run), run.directory.name)
            for label, runs in bench.runs.items()
            for seed, run in enumerate(runs, 1)
        ]
        report = ExperimentReport(
            experiment,
            self.quick,
            numbers,
            experiment.rule(numbers),
            seconds + sum(row[3] for row in rows),
            rows,
            versions(self.device),
            pictures["png"],
            self.changes,
            look_inside(bench),
        )
        self._write(report, pictures)
        return report

    def _measured(self, experiment: Experiment, bench: Bench) -> tuple[Numbers, float]:
        """The numbers, and how long it took to measure them; those in the folder if they are of the same
        experiment."""
        key = hashlib.sha256(f"{_source(experiment)}{bench.describe()}".encode()).hexdigest()
        path = self.folder / experiment.name / "numbers.json"
        if path.is_file():
            kept: Any = read_json(path)
            if isinstance(kept, dict) and kept.get("key") == key:
                return kept["numbers"], float(kept["seconds"])
        began = time.monotonic()
        numbers = experiment.measure(bench)
        seconds = time.monotonic() - began
        make_directories(path.parent)
        kept = {"key": key, "seconds": round(seconds, 2), "numbers": numbers}
        replace_file(path, json.dumps(kept, ensure_ascii=False, indent=1).encode())
        return numbers, seconds

    def _write(self, report: ExperimentReport, pictures: dict[str, bytes]) -> None:
        name = report.experiment.name
        here = self.folder / name
        make_directories(here)
        for ending, data in pictures.items():
            replace_file(here / f"figure.{ending}", data)
        chapter = article(report)
        replace_file(here / f"{name}.md", markdown(report).encode())
        replace_file(here / f"{name}.html", html_page(name, chapter).encode())
        replace_file(here / "chapter.html", chapter.encode())

    def write_book(self) -> Path | None:
        """One HTML file of all chapters that are in the folder, by lecture; None without a chapter."""
        parts = ["<h1>The lab</h1><p>Claims of lectures on attention, each tested by one command.</p>"]
        for number, title in LECTURES.items():
            own = [each for each in all_experiments().values() if each.lecture == number]
            chapters = [self.folder / each.name / "chapter.html" for each in own]
            there = [path.read_text("utf-8") for path in chapters if path.is_file()]
            if there:
                parts += [f"<h1>{number}. {title}</h1>", *there]
        if len(parts) == 1:
            return None
        path = self.folder / "book.html"
        replace_file(path, html_page("The lab", "\n".join(parts)).encode())
        return path


def look_inside(bench: Bench) -> str:
    """A command that draws the attention of one of the translators; none where there is no translator."""
    pairs = [
        label
        for label, setting in bench.settings.items()
        if label in bench.runs and setting.task.kind not in ("text", "labels", "tags")
    ]
    if not pairs:
        return ""
    sources = [source for source, _ in bench.test_pairs(pairs[-1])[:20]]
    directory = bench.runs[pairs[-1]][0].directory
    return f'dragoman explain {directory} "{max(sources, key=len)}" --out map.png'


def elapsed(run: Run) -> float:
    """Seconds of training, as far as the run has written them down."""
    found = [json.loads(line) for line in read_file(run.directory / "timing.jsonl").splitlines()]
    return max((record.get("elapsed", 0.0) for record in found), default=0.0)


def versions(device: str) -> dict[str, str]:
    named = torch.cuda.get_device_name() if device != "cpu" and torch.cuda.is_available() else "CPU"
    return {
        "dragoman": dragoman.__version__,
        "PyTorch": torch.__version__,
        "Python": platform.python_version(),
        "on": f"{sys.platform} {platform.machine()}, {named}",
    }


def _source(experiment: Experiment) -> str:
    """The code of an experiment: numbers of another version are measured again."""
    return inspect.getsource(sys.modules[experiment.rule.__module__])
