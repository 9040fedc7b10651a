"""Trains and scores tasks of `recipes/tasks.md` side by side on one GPU, within ten minutes.

    python benchmarks/tasks_gpu.py DATA OUT [--minutes 5.8] [--wall 530] [--jobs gum aeslc ...] [--toy]

DATA has `gum.train.src`, `gum.train.tgt`, `gum.dev.src` and so on, also of aeslc and tldr, `gumx.*.tgt`
(trees whose words are all x), `dialog.train.dialogues`, `ETTh1.csv`, and `digits` and `mnist` as
`digits.train.images.npy` and so on. Scenes are drawn here. OUT gets `tasks.jsonl`,
with a line for every step of every job as soon as it is done, and at the end an archive of logs, curves and
outputs. Meanwhile the search of fixed shapes is compared with the plain one on this device. `--toy`: a few
updates of everything.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from autopilot import start_mps

ROOT = Path(__file__).parents[1]
BEGAN = time.monotonic()
_STAMP = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)  (\w+)")


@dataclass(frozen=True)
class Job:
    name: str
    train: tuple[str, ...]
    tests: dict[str, tuple[str, ...]]
    """The files and options of `evaluate`, by name."""
    minutes: float | None = None
    """None: those of `--minutes`."""
    lane: str = ""
    """Jobs of one lane run one after the other, on the same cores."""


def jobs(data: Path, scenes: Path) -> list[Job]:
    def pairs(name: str, targets: str | None = None) -> tuple[str, ...]:
        targets = targets or name
        train = (f"{data}/{name}.train.src", f"{data}/{targets}.train.tgt")
        return (*train, "--valid", f"{data}/{name}.dev.src", f"{data}/{targets}.dev.tgt")

    def test(name: str, targets: str | None = None) -> tuple[str, ...]:
        return f"{data}/{name}.test.src", f"{data}/{targets or name}.test.tgt"

    trees = ("--metric", "brackets")
    dialog = (f"{data}/dialog.train.dialogues", "--valid", f"{data}/dialog.dev.dialogues")
    scenes_test = {part: (f"{scenes}/{part}.images.npy",) for part in ("test", "held-out")}
    caption = (f"{scenes}/train.images.npy", "task.kind=caption", "data.valid_size=300")
    return [
        Job("gum", pairs("gum"), {"beam": (*test("gum"), *trees)}),
        Job("gumx", pairs("gum", "gumx"), {"beam": (*test("gum", "gumx"), *trees)}),
        Job("aeslc", pairs("aeslc"), {"test": test("aeslc")}),
        Job("aeslc-copy", (*pairs("aeslc"), "model.copy=true"), {"test": test("aeslc")}),
        Job("tldr-copy", (*pairs("tldr"), "model.copy=true"), {"test": test("tldr")}),
        Job("dialog", (*dialog, "train.metric=perplexity"), {"test": (f"{data}/dialog.test.dialogues",)}),
        Job("scenes", caption, scenes_test),
        *small_jobs(data),
    ]


def small_jobs(data: Path) -> list[Job]:
    def images(name: str, minutes: float, lane: str) -> Job:
        train = (f"{data}/{name}.train.images.npy", "task.kind=image", "data.valid_size=200")
        return Job(name, train, {"test": (f"{data}/{name}.test.images.npy",)}, minutes, lane)

    def forecast(name: str, lane: str, *options: str) -> Job:
        train = (f"{data}/ETTh1.csv", "task.kind=forecast", "task.series.split=[8640,2880,2880]")
        return Job(name, (*train, "train.batch_tokens=21504", *options), {"test": ()}, 1.25, lane)

    return [
        images("digits", 1.7, "small"),
        forecast("ett-mix", "small", "task.layers=mix", "optim.rate=0.0003"),
        forecast("ett-slow", "small", "optim.rate=0.0002"),
        images("mnist", 2.2, "more"),
        forecast("ett-mix-long", "more", "task.layers=mix", "optim.rate=0.0003", "task.series.window=512"),
        forecast("ett-linear", "more", "task.layers=embeddings", "optim.rate=0.001"),
    ]


class Kept:
    """Results, a line each."""

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.Lock()
        self.rows: list[dict[str, Any]] = []

    def add(self, **row: Any) -> None:
        row["at"] = round(time.monotonic() - BEGAN)
        with self._lock, self.path.open("a", encoding="utf-8") as file:
            self.rows.append(row)
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        print(json.dumps(row, ensure_ascii=False), flush=True)


@dataclass
class Runner:
    work: Path
    kept: Kept
    minutes: float
    wall: float
    toy: bool
    cores: Sequence[int]

    def run_lane(self, lane: Sequence[Job], number: int, of: int) -> None:
        own = self.cores[number * len(self.cores) // of : (number + 1) * len(self.cores) // of]
        for job in lane:
            self.run(job, own or self.cores)

    def run(self, job: Job, own: Sequence[int]) -> None:
        run, log = self.work / job.name, self.work / f"{job.name}.log"
        limits = ["train.max_updates=3", "train.validate_every=2", "train.validate_sentences=4"]
        ends = limits if self.toy else ["--minutes", f"{job.minutes or self.minutes:g}"]
        code = self.call(["train", *job.train, *ends, "--out", str(run), "seed=1"], log, own)
        self.kept.add(job=job.name, step="train", code=code, **summary(run, log))
        for name, files in job.tests.items():
            told = self.work / f"{job.name}.{name}.log"
            began = time.monotonic()
            code = self.call(["evaluate", str(run), *files], told, own)
            seconds = round(time.monotonic() - began, 1)
            self.kept.add(job=job.name, step=name, code=code, seconds=seconds, told=tail(told, 12))

    def call(self, arguments: list[str], log: Path, cores: Sequence[int]) -> int:
        """The exit status, 124 where the time was over."""
        left = self.wall - (time.monotonic() - BEGAN)
        environment = dict(os.environ, OMP_NUM_THREADS=str(max(1, len(cores))))
        with log.open("w", encoding="utf-8") as file:
            started = subprocess.Popen(
                [sys.executable, "-m", "dragoman", *arguments],
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
            )
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(started.pid, cores)
            try:
                return started.wait(timeout=max(1.0, left))
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()
                return 124


def tail(path: Path, count: int) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]


def summary(run: Path, log: Path) -> dict[str, Any]:
    """Where the time of a training went, to the second: until its first update, in validations, and in
    updates; and the best validation."""
    seen = [
        (m[1], m[2]) for line in log.read_text(encoding="utf-8").splitlines() if (m := _STAMP.match(line))
    ]
    times = [(datetime.fromisoformat(at).timestamp(), what) for at, what in seen]
    updates = [at for at, what in times if what == "update"]
    in_validation = sum(at - before for (before, _), (at, what) in pairwise(times) if what == "valid")
    metrics = run / "metrics.jsonl"
    lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.exists() else []
    rows = [json.loads(line) for line in lines if line]
    return {
        "updates": max((row.get("update", 0) for row in rows), default=0),
        "seconds_before": round(updates[0] - times[0][0]) if updates else None,
        "seconds_in_validation": round(in_validation),
        "validations": sum(what == "valid" for _, what in times),
        "seconds": round(times[-1][0] - times[0][0]) if times else None,
        "told": tail(log, 4),
    }


def check_search(device: str, count: int) -> str:
    """Random models with brackets, copying and vectors: what both searches find, and how long they take."""
    import torch

    from dragoman.decode.gpu.continuous import Rooms
    from dragoman.decode.search.batch import SearchBatch
    from dragoman.decode.search.beam import Beam
    from dragoman.decode.search.config import BeamSearch
    from dragoman.decode.search.job import Job as Sentence
    from dragoman.decode.search.scorer import Scorer
    from dragoman.models import build_model
    from dragoman.models.base import Vocab
    from dragoman.models.transformer import TransformerConfig
    from dragoman.text.piece_bytes import Spelling

    torch.manual_seed(1)
    marks = [b" ", b"(", b")", b" (", b"))", b" )", b"(("]
    spelling = Spelling([b"", b"", b"", *marks, *(b" %d" % number for number in range(4000))])
    vocab = Vocab(len(spelling), len(spelling), shared=True)
    found = []
    for brackets, copies in (("", False), ("()", False), ("", True), ("()", True)):
        config = TransformerConfig(
            num_layers=3, model_dim=128, num_heads=4, ff_dim=256, copy=copies, norm="pre"
        )
        model = build_model("transformer", config, vocab).eval().to(device).requires_grad_(False)
        for parameter in model.parameters():
            parameter.mul_(2)
        scorer = Scorer([model])
        scorer.texts = lambda: spelling
        lengths = torch.randint(5, 60, (count,)).tolist()
        sentences = [Sentence((*torch.randint(3, len(spelling), (n,)).tolist(), 2)) for n in lengths]
        search = BeamSearch(beam=4, brackets=brackets, loop_guard=False)
        with torch.inference_mode():
            batch = SearchBatch.of(sentences, search, vocab, scorer.device, scorer.texts)
            rooms = Rooms()
            assert rooms.take([model], search)
            rooms.search(model, batch, search)  # captures
            times = [time.monotonic()]
            results = [rooms.search(model, batch, search)]
            times.append(time.monotonic())
            results.append(Beam(scorer, batch, search).run())
            times.append(time.monotonic())
        same = sum(a[0].tokens == b[0].tokens for a, b in zip(*results, strict=True))
        better = sum(a[0].score(search) - b[0].score(search) for a, b in zip(*results, strict=True)) / count
        found.append(
            f"brackets {brackets or 'none'}, copying {copies}: {same} of {count} equal, "
            f"scores {better:+.5f}, "
            f"{times[1] - times[0]:.2f} s beside {times[2] - times[1]:.2f} s"
        )
    return "; ".join(found)


def pack(work: Path, path: Path) -> None:
    """Logs, curves, configurations and outputs."""
    wanted = ("*.log", "*/metrics.jsonl", "*/config.yaml", "*/evaluation/*/*")
    with tarfile.open(path, "w:gz") as archive:
        for pattern in wanted:
            for file in sorted(work.glob(pattern)):
                archive.add(file, str(file.relative_to(work)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=5.8, help="Of each training.")
    parser.add_argument("--wall", type=float, default=525, help="Seconds for everything.")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir(), "tasks_gpu"))
    parser.add_argument("--jobs", nargs="*")
    parser.add_argument("--toy", action="store_true")
    arguments = parser.parse_args()
    work = arguments.work
    work.mkdir(parents=True, exist_ok=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    kept = Kept(arguments.out / "tasks.jsonl")
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        start_mps(work)
    chosen = [
        job
        for job in jobs(arguments.data, work / "drawn")
        if not arguments.jobs or job.name in arguments.jobs
    ]
    if any(job.name.startswith("scenes") for job in chosen):
        subprocess.run([sys.executable, str(ROOT / "recipes/scenes.py"), str(work / "drawn")], check=True)
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    runner = Runner(work, kept, arguments.minutes, arguments.wall, arguments.toy, cores)
    lanes: dict[str, list[Job]] = {}
    for job in chosen:
        lanes.setdefault(job.lane or job.name, []).append(job)
    with ThreadPoolExecutor(len(lanes)) as pool:
        started = [
            pool.submit(runner.run_lane, lane, number, len(lanes))
            for number, lane in enumerate(lanes.values())
        ]
        try:
            kept.add(job="check", step="search", told=check_search(device, 4 if arguments.toy else 256))
        except Exception as error:  # the trainings go on
            kept.add(job="check", step="search", told=repr(error))
        for one in started:
            try:
                one.result()
            except Exception as error:
                kept.add(job="?", step="?", told=repr(error))
    pack(work, arguments.out / "tasks_runs.tgz")
    print("\njob, step: seconds, updates, before, validations, output", flush=True)
    for row in sorted(kept.rows, key=lambda row: (row["job"], row["at"])):
        figures = [
            row.get(name) for name in ("seconds", "updates", "seconds_before", "seconds_in_validation")
        ]
        told = row.get("told")
        print(row["job"], row["step"], *figures, told if isinstance(told, str) else "", sep="  ")
        for line in told if isinstance(told, list) else ():
            print("     ", line[:150])


if __name__ == "__main__":
    main()
