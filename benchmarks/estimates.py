"""Predicted against real time of six runs: does a plan say how long training takes?

    python benchmarks/estimates.py --device cpu --updates 300
    python benchmarks/estimates.py --device cuda --updates 3000 --minutes 1 --jobs 2 --wall 530

Each run is a command of its own on made-up pairs, timed from outside, `--jobs` of them at once. «plan» is
what is printed before training, «measured» what is printed after the first validation. Further runs have a
budget of minutes: they have to end within it. What has not begun before `--wall` seconds is left out.
"""

import argparse
import functools
import itertools
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from common import write_table
from made_up import write_corpus

_DURATION = r"((?:\d+:)?\d+:\d\d)"


@dataclass(frozen=True)
class Case:
    name: str
    overrides: tuple[str, ...]
    updates: float
    """Of the number that was asked for: larger models do fewer."""


CASES = (
    Case("tiny Transformer", ("model.preset=transformer-tiny",), 1.0),
    Case("small Transformer", ("model.preset=transformer-small",), 0.3),
    Case("tiny, validations often", ("model.preset=transformer-tiny", "train.validate_sentences=400"), 0.6),
    Case("tiny, R-Drop", ("model.preset=transformer-tiny", "objective.r_drop=5"), 0.4),
    Case("LSTM", ("model.preset=lstm",), 0.2),
    Case("convs2s", ("model.preset=convs2s",), 0.2),
)
BUDGET = Case("tiny Transformer, budget", ("model.preset=transformer-tiny",), 0.0)


def seconds_of(text: str) -> int:
    total = 0
    for part in text.split(":"):
        total = 60 * total + int(part)
    return total


def found(pattern: str, text: str) -> int | None:
    match = re.search(pattern, text)
    return seconds_of(match[1]) if match else None


def train(files: list[str], out: Path, *arguments: str) -> tuple[str, float]:
    """What a command prints, and the seconds that it took, start of Python and all."""
    command = [sys.executable, "-m", "dragoman", "train", *files, "--out", str(out), *arguments]
    began = time.monotonic()
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    if finished.returncode:
        sys.exit(f"{' '.join(command)}\n{finished.stdout[-2000:]}\n{finished.stderr[-4000:]}")
    return finished.stdout, seconds


def estimated(case: Case, files: list[str], out: Path, args: argparse.Namespace) -> list[str]:
    """A row of the table: what was said about a run with a number of updates, and what it took."""
    updates = max(20, int(case.updates * args.updates))
    every = max(5, updates // (20 if "often" in case.name else 8))
    counts = (f"train.max_updates={updates}", f"train.validate_every={every}", f"train.save_every={every}")
    log = f"train.log_every={max(1, every // 5)}"
    told, real = train(files, out, *shared(args), *case.overrides, *counts, log, "train.patience=null")
    plan = found(rf"time +about {_DURATION}", told)
    measured = found(rf"the whole run takes about {_DURATION}", told)
    cells = [case.name, f"{updates}", *map(shown, (plan, measured)), f"{real:.0f}"]
    return [*cells, error(plan, real), error(measured, real)]


def budgeted(minutes: float, files: list[str], out: Path, args: argparse.Namespace) -> list[str]:
    """A row of a run with a budget."""
    told, real = train(files, out, *shared(args), *BUDGET.overrides, "--minutes", f"{minutes:g}")
    updates = found_number(r"finished at update (\d+)", told)
    return [BUDGET.name, updates, f"{60 * minutes:.0f}", "", f"{real:.0f}", error(60 * minutes, real), ""]


def shared(args: argparse.Namespace) -> tuple[str, ...]:
    device, tokens = f"train.device={args.device}", f"train.batch_tokens={args.batch_tokens}"
    return device, tokens, "data.valid_size=500"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--updates", type=int, default=300, help="of the smallest model")
    parser.add_argument("--tokens", type=int, default=400_000, help="of the made-up corpus, a side")
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument("--minutes", type=float, nargs="*", default=[1.0, 2.0], help="budgets to try")
    parser.add_argument("--only", help="cases whose name has this in it")
    parser.add_argument(
        "--jobs", type=int, default=1, help="runs at once: 2 at most, or they slow each other"
    )
    parser.add_argument("--wall", type=float, default=float("inf"), help="seconds after which none begins")
    parser.add_argument("--keep", action="store_true", help="write the table under benchmarks/results/")
    return parser.parse_args()


def main() -> None:
    args, began = parsed(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        files = write_corpus(Path(folder), args.tokens, words=4000)
        places = (Path(folder) / str(number) for number in itertools.count())
        jobs: list[Callable[[], list[str]]] = [
            functools.partial(budgeted, minutes, files, next(places), args) for minutes in args.minutes
        ]
        cases = [case for case in CASES if not args.only or args.only in case.name]
        jobs += [functools.partial(estimated, case, files, next(places), args) for case in cases]

        def one(job: Callable[[], list[str]]) -> list[str] | None:
            if time.monotonic() - began > args.wall:
                return None
            row = job()
            print(" | ".join(row), flush=True)
            return row

        with ThreadPoolExecutor(max_workers=args.jobs) as pool:
            rows = [row for row in pool.map(one, jobs) if row is not None]
    if len(rows) < len(jobs):
        print(f"{len(jobs) - len(rows)} runs did not begin before the wall")
    header = ["run", "updates", "plan (s)", "measured (s)", "real (s)", "plan off by", "measured off by"]
    notes = (
        "Seconds of the whole command. «plan»: printed before training; «measured»: printed after the first "
        f"validation. Under a budget the plan is the budget. {args.jobs} at once."
    )
    title = "Predicted and real time of training"
    write_table(f"estimates_{args.device}", title, header, rows, notes, keep=args.keep)


def found_number(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match[1] if match else "?"


def shown(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.0f}"


def error(predicted: float | None, real: float) -> str:
    return "" if predicted is None else f"{100 * (predicted / real - 1):+.0f}%"


if __name__ == "__main__":
    main()
