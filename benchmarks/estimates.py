"""Predicted against real time of six runs: does a plan say how long training takes?

    python benchmarks/estimates.py --device cpu --updates 300
    python benchmarks/estimates.py --device cuda --updates 3000

Each run is a command of its own on made-up pairs, timed from outside. «plan» is what is printed before
training, «measured» what is printed after the first validation. Two further runs have a budget of minutes:
they have to end within it.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--updates", type=int, default=300, help="of the smallest model")
    parser.add_argument("--tokens", type=int, default=400_000, help="of the made-up corpus, a side")
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument("--minutes", type=float, nargs="*", default=[1.0, 2.0], help="budgets to try")
    parser.add_argument("--only", help="cases whose name has this in it")
    parser.add_argument("--keep", action="store_true", help="write the table under benchmarks/results/")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        files = write_corpus(Path(folder), args.tokens, words=4000)
        shared = (
            f"train.device={args.device}",
            f"train.batch_tokens={args.batch_tokens}",
            "data.valid_size=500",
        )
        for number, case in enumerate(CASES):
            if args.only and args.only not in case.name:
                continue
            updates = max(20, int(case.updates * args.updates))
            every = max(5, updates // (20 if "often" in case.name else 8))
            counts = (
                f"train.max_updates={updates}",
                f"train.validate_every={every}",
                f"train.save_every={every}",
            )
            log = f"train.log_every={max(1, every // 5)}"
            told, real = train(
                files,
                Path(folder) / str(number),
                *shared,
                *case.overrides,
                *counts,
                log,
                "train.patience=null",
            )
            plan = found(rf"time +about {_DURATION}", told)
            measured = found(rf"the whole run takes about {_DURATION}", told)
            rows.append([case.name, f"{updates}", *map(shown, (plan, measured)), f"{real:.0f}",
                         error(plan, real), error(measured, real)])  # fmt: skip
            print(" | ".join(rows[-1]), flush=True)
        for minutes in args.minutes:
            told, real = train(
                files, Path(folder) / f"b{minutes}", *shared, *BUDGET.overrides, "--minutes", f"{minutes:g}"
            )
            budget = 60 * minutes
            updates = found_number(r"finished at update (\d+)", told)
            rows.append([BUDGET.name, updates, f"{budget:.0f}", "", f"{real:.0f}", error(budget, real), ""])
            print(" | ".join(rows[-1]), flush=True)
    header = ["run", "updates", "plan (s)", "measured (s)", "real (s)", "plan off by", "measured off by"]
    notes = (
        "Seconds of the whole command. «plan»: printed before training; «measured»: printed after the first "
        "validation. Under a budget the plan is the budget."
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
