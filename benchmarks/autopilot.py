"""How good is `dragoman train FILES` with nothing else said, beside an expert and an earlier version?

    python benchmarks/autopilot.py DATA --minutes 3 --jobs 8                 default, all tasks
    python benchmarks/autopilot.py DATA --arms default hand old --old ../before
    python benchmarks/autopilot.py DATA --arms lstm convs2s --tasks "g2p fr" "SQL geo" captions
    python benchmarks/autopilot.py DATA --device cpu --cores 2 --jobs 1 --minutes 10

Each run is a process of its own, `--jobs` of them at once, with `train.max_minutes`. Test sets are translated
as the run says, and scored once. Results lie below `--work`, and what is there is not run again; every call
prints the table of all that is there and writes it to `benchmarks/results/autopilot.md`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any

from autopilot_tasks import TASKS, Task

HERE = Path(__file__).resolve().parent.parent
RESULTS = HERE / "benchmarks" / "results" / "autopilot.md"
ARMS = {
    "default": (),
    "hand": (),
    "old": (),
    "lstm": ("model.preset=lstm",),
    "convs2s": ("model.preset=convs2s",),
}
_PINNED = (
    "import os,sys;os.sched_setaffinity(0,map(int,sys.argv[1].split(',')));os.execv(sys.argv[2],sys.argv[2:])"
)


@dataclass(frozen=True)
class Job:
    name: str
    arm: str
    task: Task
    arguments: argparse.Namespace

    @property
    def directory(self) -> Path:
        budget = f"{self.arguments.device}-{self.arguments.minutes:g}"
        return self.arguments.work / f"{self.name}.{self.arm}.{budget}".replace(" ", "_")

    def files(self, pairs: tuple[str, str]) -> list[str]:
        folder = self.arguments.data
        if self.task.write is not None:
            folder = self.arguments.work / f"data.{self.name}".replace(" ", "_")
        return [str(folder / file) for file in pairs if file]

    def run(self, cores: list[int]) -> dict[str, Any]:
        """Train and evaluate; the figures are kept in `result.json`."""
        kept = self.directory / "result.json"
        if kept.exists():
            return json.loads(kept.read_text(encoding="utf-8"))
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        began = time.monotonic()
        seconds = self._train(cores)
        hypotheses = self._translate(cores)
        references = lines(self.files(self.task.test)[1])
        result = {
            "task": self.name,
            "arm": self.arm,
            "device": self.arguments.device,
            "minutes": self.arguments.minutes,
            "train_seconds": round(seconds, 1),
            "seconds": round(time.monotonic() - began, 1),
            **(scores(hypotheses, references) if hypotheses is not None else {"failed": self._last_words()}),
            **self._curve(),
        }
        kept.write_text(json.dumps(result, indent=1), encoding="utf-8")
        return result

    def _train(self, cores: list[int]) -> float:
        task, minutes = self.task, self.arguments.minutes
        valid = [word for file in self.files(task.valid) for word in ("--valid", file)]
        overrides = [
            f"train.max_minutes={minutes:g}",
            f"train.device={self.arguments.device}",
            *ARMS[self.arm],
        ]
        if self.arm == "hand":
            overrides += task.by_hand
            if self.arguments.device == "cpu":
                overrides += ["model.model_dim=128", "model.ff_dim=512", "train.batch_tokens=2500"]
        began = time.monotonic()
        arguments = [
            "train",
            *self.files(task.train),
            *valid,
            "--out",
            str(self.directory / "run"),
            *overrides,
        ]
        self._dragoman(arguments, cores, timeout=60 * (3 * minutes + 10))
        return time.monotonic() - began

    def _translate(self, cores: list[int]) -> list[str] | None:
        run = self.directory / "run"
        arguments = ["evaluate", str(run), *self.files(self.task.test), "--bootstrap", "0", "--name", "test"]
        self._dragoman([*arguments, "--device", self.arguments.device], cores, timeout=1800)
        found = run / "evaluation" / "test" / "hypotheses.txt"
        return found.read_text(encoding="utf-8").split("\n")[:-1] if found.exists() else None

    def _dragoman(self, arguments: list[str], cores: list[int], timeout: float) -> None:
        source = (self.arguments.old if self.arm == "old" else HERE) / "src"
        environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": str(max(1, len(cores)))}
        environment["TOKENIZERS_PARALLELISM"] = "false"
        command = [sys.executable, "-m", "dragoman", *arguments]
        if cores:
            command = [sys.executable, "-c", _PINNED, ",".join(map(str, cores)), *command]
        with (self.directory / "log.txt").open("ab") as log:
            log.write(f"$ {' '.join(arguments)}\n".encode())
            log.flush()
            try:
                subprocess.run(command, stdout=log, stderr=log, env=environment, timeout=timeout, check=False)
            except subprocess.TimeoutExpired:
                log.write(b"too slow: ended by the benchmark\n")

    def _last_words(self) -> str:
        said = (self.directory / "log.txt").read_text(encoding="utf-8", errors="replace").strip().split("\n")
        return said[-1][:300]

    def _curve(self) -> dict[str, Any]:
        """How the validation metric went: its best value, its last one, and the number of updates."""
        path = self.directory / "run" / "metrics.jsonl"
        if not path.exists():
            return {}
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        found = [row[self.task.metric] for row in rows if self.task.metric in row]
        updates = max((row.get("update", 0) for row in rows), default=0)
        return {"updates": updates, **({"best_valid": max(found), "last_valid": found[-1]} if found else {})}


def lines(path: str) -> list[str]:
    from dragoman.data.formats import read_lines

    return list(read_lines(path))


def scores(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    import sacrebleu

    right = sum(h.split() == r.split() for h, r in zip(hypotheses, references, strict=True))
    return {
        "exact": round(100 * right / len(references), 2),
        "bleu": round(sacrebleu.corpus_bleu(list(hypotheses), [list(references)]).score, 2),
        "chrf": round(sacrebleu.corpus_chrf(list(hypotheses), [list(references)]).score, 2),
    }


def table(work: Path) -> str:
    """All results that there are, a table for each device and number of minutes."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(work.glob("*/result.json"))]
    parts = ["# What the autopilot reaches\n"]
    for device, minutes in sorted({(row["device"], row["minutes"]) for row in found}):
        own = [row for row in found if (row["device"], row["minutes"]) == (device, minutes)]
        parts += [f"## {minutes:g} minutes a task on {device}\n", *_rows(own), ""]
    return "\n".join(parts)


def _rows(own: list[dict[str, Any]]) -> list[str]:
    arms = [arm for arm in ARMS if any(row["arm"] == arm for row in own)]
    by_key = {(row["task"], row["arm"]): row for row in own}
    rows = [
        "| task | metric | " + " | ".join(arms) + " | published |",
        "|---|---|" + "---|" * (len(arms) + 1),
    ]
    sums: dict[str, list[float]] = {arm: [] for arm in arms}
    for name, task in TASKS.items():
        results = {arm: by_key.get((name, arm)) for arm in arms}
        if not any(results.values()):
            continue
        cells = []
        for arm, result in results.items():
            value = result.get(task.metric) if result else None
            cells.append("" if result is None else "failed" if value is None else f"{value:.1f}")
            if all(r is not None and task.metric in r for r in results.values()) and value is not None:
                sums[arm].append(value)
        rows.append(f"| {name} | {task.metric} | {' | '.join(cells)} | {task.published} |")
    count = len(next(iter(sums.values()), []))
    if count:
        means = " | ".join(f"**{sum(values) / count:.1f}**" for values in sums.values())
        rows.append(f"| mean of {count} | | {means} | |")
    falls = [
        f"{row['task']} ({row['arm']}): {row['best_valid']:.1f} → {row['last_valid']:.1f}"
        for row in own
        if _fell(row)
    ]
    if falls:
        rows.append(
            "\nWorse at the end than at the best validation by more than 3 points: " + "; ".join(falls) + "."
        )
    return rows


def _fell(row: dict[str, Any]) -> bool:
    return "best_valid" in row and row["best_valid"] - row["last_valid"] > 3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="Folder of the data sets.")
    parser.add_argument(
        "--tasks", nargs="*", default=[], help="Beginnings of names of tasks; all without any."
    )
    parser.add_argument("--arms", nargs="*", default=["default"], choices=list(ARMS))
    parser.add_argument("--old", type=Path, help="Checkout of an earlier version, for the arm old.")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cores", type=int, default=0, help="Cores of each run; 0: all, shared.")
    parser.add_argument("--work", type=Path, default=Path("autopilot-runs"))
    parser.add_argument("--no-write", action="store_true", help="Print the table only.")
    arguments = parser.parse_args()
    if "old" in arguments.arms and arguments.old is None:
        parser.error("--arms old needs --old")
    arguments.work.mkdir(parents=True, exist_ok=True)
    names = [n for n in TASKS if not arguments.tasks or any(n.startswith(t) for t in arguments.tasks)]
    jobs = [Job(name, arm, TASKS[name], arguments) for name in names for arm in arguments.arms]
    for job in jobs:
        if job.task.write is not None:
            folder = Path(job.files(("x", ""))[0]).parent
            folder.mkdir(exist_ok=True)
            job.task.write(arguments.data, folder)
    run_all(jobs, arguments)
    text = table(arguments.work)
    print(text)
    if not arguments.no_write:
        RESULTS.write_text(text, encoding="utf-8")


def run_all(jobs: list[Job], arguments: argparse.Namespace) -> None:
    places: Queue[list[int]] = Queue()
    for number in range(arguments.jobs):
        places.put(list(range(number * arguments.cores, (number + 1) * arguments.cores)))

    def one(job: Job) -> None:
        cores = places.get()
        try:
            result = job.run(cores)
        finally:
            places.put(cores)
        value = result.get(job.task.metric, result.get("failed"))
        print(
            f"{job.name:22} {job.arm:8} {value}  {result.get('updates')} updates  {result['seconds']:.0f} s",
            flush=True,
        )

    with ThreadPoolExecutor(max_workers=arguments.jobs) as pool:
        for done in [pool.submit(one, job) for job in jobs]:
            done.result()


if __name__ == "__main__":
    main()
