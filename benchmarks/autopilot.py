"""How good is `dragoman train FILES` with nothing else said, beside a search, an expert and an old version?

    python benchmarks/autopilot.py DATA --minutes 3 --jobs 8                 default, all tasks, on a GPU
    python benchmarks/autopilot.py DATA --arms default search hand old --old ../before
    python benchmarks/autopilot.py DATA --arms lstm convs2s --tasks "g2p fr" "SQL geo" captions
    python benchmarks/autopilot.py DATA --tasks "g2p it" "en-ga" --more hand "g2p it" --more lstm "g2p fr"
    python benchmarks/autopilot.py DATA --device cpu --cores 2 --jobs 8 --minutes 8.5 --wall 590

Each run is a process of its own, `--jobs` of them at once, on `--cores` cores that no other has. Test sets
are translated as the run says, and scored once. Of the arm `hand` each setting of the task is a run; the
table has the one that is best on the validation set. Each result is a line of `--results` as soon as it is
there, and what is there is not run again: a call that ends at its `--wall` is continued by the same call.
Every call prints the table of all results.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any

from autopilot_table import ARMS, table
from autopilot_tasks import TASKS, Task, by_hand

HERE = Path(__file__).resolve().parent.parent
RESULTS = HERE / "benchmarks" / "results" / "autopilot.md"
_EVALUATION_SECONDS = 45.0
"""Kept free before the wall for translating a test set."""
_PINNED = (
    "import os,sys;os.sched_setaffinity(0,map(int,sys.argv[1].split(',')));os.execv(sys.argv[2],sys.argv[2:])"
)


class OutOfTimeError(Exception):
    """The wall came before the end of a run."""


@dataclass(frozen=True)
class Job:
    name: str
    arm: str
    setting: int
    """Of several by hand; 0 for other arms."""
    task: Task
    arguments: argparse.Namespace
    deadline: float

    @property
    def key(self) -> tuple[Any, ...]:
        own = self.arguments
        return self.name, self.arm, self.setting, own.device, own.cores, own.minutes

    @property
    def directory(self) -> Path:
        name, arm, setting, *rest = self.key
        return self.arguments.work / ".".join(map(str, (name, f"{arm}{setting or ''}", *rest))).replace(
            " ", "_"
        )

    @property
    def left(self) -> float:
        return self.deadline - time.monotonic()

    @property
    def fits(self) -> bool:
        """Whether all of it can be done before the wall."""
        return self.left > 60 * self.arguments.minutes + _EVALUATION_SECONDS

    def files(self, pairs: tuple[str, str]) -> list[str]:
        folder = self.arguments.data
        if self.task.write is not None:
            folder = self.arguments.work / f"data.{self.name}".replace(" ", "_")
        return [str(folder / file) for file in pairs if file]

    def run(self, cores: list[int]) -> dict[str, Any]:
        """Train and evaluate."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        began = time.monotonic()
        seconds = self._train(cores)
        hypotheses = self._translate(cores)
        references = lines(self.files(self.task.test)[1])
        name, arm, setting, device, own_cores, minutes = self.key
        return {
            "task": name,
            "arm": arm,
            "setting": setting,
            "device": device,
            "cores": own_cores,
            "minutes": minutes,
            "train_seconds": round(seconds, 1),
            "seconds": round(time.monotonic() - began, 1),
            **(scores(hypotheses, references) if hypotheses is not None else {"failed": self._last_words()}),
            **self._curve(),
        }

    def _train(self, cores: list[int]) -> float:
        task, own = self.task, self.arguments
        valid = [word for file in self.files(task.valid) for word in ("--valid", file)]
        overrides = [f"train.max_minutes={own.minutes:g}", f"train.device={own.device}", *ARMS[self.arm]]
        if self.arm == "search":
            overrides = [*overrides[1:], "--search", "--minutes", f"{own.minutes:g}"]
        if self.arm == "hand":
            overrides += by_hand(task, own.device)[self.setting]
        began = time.monotonic()
        out = ["--out", str(self.directory / "run")]
        arguments = ["train", *self.files(task.train), *valid, *out, *overrides]
        self._dragoman(arguments, cores, timeout=60 * (3 * own.minutes + 10))
        return time.monotonic() - began

    def _translate(self, cores: list[int]) -> list[str] | None:
        run = self.directory / "run"
        arguments = ["evaluate", str(run), *self.files(self.task.test), "--bootstrap", "0", "--name", "test"]
        self._dragoman([*arguments, "--device", self.arguments.device], cores, timeout=1800)
        found = run / "evaluation" / "test" / "hypotheses.txt"
        return found.read_text(encoding="utf-8").split("\n")[:-1] if found.exists() else None

    def _dragoman(self, arguments: list[str], cores: list[int], timeout: float) -> None:
        source = (self.arguments.old if self.arm == "old" else HERE) / "src"
        environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        environment |= {"OMP_NUM_THREADS": str(max(1, len(cores))), "TOKENIZERS_PARALLELISM": "false"}
        command = [sys.executable, "-m", "dragoman", *arguments]
        if cores:
            command = [sys.executable, "-c", _PINNED, ",".join(map(str, cores)), *command]
        with (self.directory / "log.txt").open("ab") as log:
            log.write(f"$ {' '.join(arguments)}\n".encode())
            log.flush()
            limit = min(timeout, max(1.0, self.left))
            try:
                subprocess.run(command, stdout=log, stderr=log, env=environment, timeout=limit, check=False)
            except subprocess.TimeoutExpired:
                log.write(b"too slow: ended by the benchmark\n")
                if limit < timeout:
                    raise OutOfTimeError from None

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


class Kept:
    """Results, a line each, in one file."""

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.Lock()

    def all(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text(encoding="utf-8").split("\n") if line]

    def done(self) -> set[tuple[Any, ...]]:
        names = ("task", "arm", "setting", "device", "cores", "minutes")
        return {tuple(row[name] for name in names) for row in self.all()}

    def add(self, row: dict[str, Any]) -> None:
        with self._lock, self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def run_all(jobs: list[Job], kept: Kept, arguments: argparse.Namespace) -> None:
    places: Queue[list[int]] = Queue()
    for number in range(arguments.jobs):
        places.put(list(range(number * arguments.cores, (number + 1) * arguments.cores)))

    def one(job: Job) -> None:
        cores = places.get()
        try:
            if not job.fits:
                return
            result = job.run(cores)
        except OutOfTimeError:
            print(f"{job.name:22} {job.arm:8} not done before the wall", flush=True)
            return
        finally:
            places.put(cores)
        kept.add(result)
        value = result.get(job.task.metric, result.get("failed"))
        told = f"{value}  {result.get('updates')} updates  {result['seconds']:.0f} s"
        print(f"{job.name:22} {job.arm}{job.setting or '':<7} {told}", flush=True)

    with ThreadPoolExecutor(max_workers=arguments.jobs) as pool:
        for done in [pool.submit(one, job) for job in jobs]:
            done.result()


def start_mps(work: Path) -> None:
    """Many processes share one card through NVIDIA's multi-process service."""
    for name in ("PIPE", "LOG"):
        folder = work / f"mps-{name.lower()}"
        folder.mkdir(exist_ok=True)
        os.environ[f"CUDA_MPS_{name}_DIRECTORY"] = str(folder.resolve())
    subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="Folder of the data sets.")
    parser.add_argument(
        "--tasks", nargs="*", default=[], help="Beginnings of names of tasks; all without any."
    )
    parser.add_argument("--arms", nargs="*", default=["default"], choices=list(ARMS))
    parser.add_argument(
        "--more",
        nargs="+",
        action="append",
        default=[],
        metavar=("ARM", "TASK"),
        help="A further arm for some tasks; may be repeated.",
    )
    parser.add_argument("--old", type=Path, help="Checkout of an earlier version, for the arm old.")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--jobs", type=int, default=1, help="Runs at once.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cores", type=int, default=0, help="Cores of each run; 0: all, shared.")
    parser.add_argument("--wall", type=float, default=float("inf"), help="Seconds that this call may take.")
    parser.add_argument("--mps", action="store_true", help="Start NVIDIA's multi-process service first.")
    parser.add_argument("--work", type=Path, default=Path("autopilot-runs"))
    parser.add_argument("--results", type=Path, help="File of results.  [default: WORK/results.jsonl]")
    parser.add_argument("--write", action="store_true", help=f"Write the table to {RESULTS.name}.")
    arguments = parser.parse_args()
    arms = {*arguments.arms, *(arm for arm, *_ in arguments.more)}
    if unknown := arms - set(ARMS):
        parser.error(f"--more: {', '.join(unknown)} is not one of {', '.join(ARMS)}")
    if "old" in arms and arguments.old is None:
        parser.error("the arm old needs --old")
    return arguments


def named(beginnings: Sequence[str]) -> list[str]:
    """The tasks whose names begin like this; all without any."""
    return [name for name in TASKS if not beginnings or any(map(name.startswith, beginnings))]


def main() -> None:
    deadline = time.monotonic()
    arguments = parsed()
    deadline += arguments.wall
    arguments.work.mkdir(parents=True, exist_ok=True)
    kept = Kept(arguments.results or arguments.work / "results.jsonl")
    if arguments.mps:
        start_mps(arguments.work)
    wanted = [(name, arm) for name in named(arguments.tasks) for arm in arguments.arms]
    wanted += [(name, arm) for arm, *tasks in arguments.more for name in named(tasks)]
    jobs = []
    for name, arm in dict.fromkeys(wanted):
        settings = range(len(by_hand(TASKS[name], arguments.device))) if arm == "hand" else range(1)
        jobs += [Job(name, arm, number, TASKS[name], arguments, deadline) for number in settings]
    done = kept.done()
    jobs = [job for job in jobs if job.key not in done]
    for job in jobs:
        if job.task.write is not None:
            folder = Path(job.files(("x", ""))[0]).parent
            folder.mkdir(exist_ok=True)
            job.task.write(arguments.data, folder)
    run_all(jobs, kept, arguments)
    left = sum(job.key not in kept.done() for job in jobs)
    print(f"{left} of {len(jobs)} runs are left for another call" if left else "all runs are done")
    text = table(kept.all())
    print(text)
    if arguments.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
