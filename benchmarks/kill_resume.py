"""Does a run that is killed at any moment and resumed end bit for bit as if it had never stopped?

    python benchmarks/kill_resume.py 200

A tiny Transformer is trained for real, with dropout, accumulation, a moving average, validation by decoding
and averaging of checkpoints. One run is left alone; each of the others gets SIGKILL at a random moment (one
in four gets a second one after it was resumed) and is then resumed to its end. Weights, optimizer state,
moving average, state, metrics and the choice of the best checkpoint are compared byte by byte.

torch is imported once; every session is a fork of this process, which itself computes nothing.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
import torch._dynamo  # torch.optim imports it at its first use; the forks are to spend their time on training

from dragoman import checkpoint
from dragoman.data.corpus import prepare
from dragoman.learning.resolve import resolve_config
from dragoman.runs.directory import Run
from dragoman.training.display import NoDisplay
from dragoman.training.session import train_run

RESULTS = Path(__file__).parent / "results" / "kill_resume.md"
UPDATES = 48


def plain_config(directory: Path) -> dict[str, Any]:
    chance = random.Random(1)
    pairs = {
        " ".join(chance.choices(["ab", "cd", "e", "fgh", "i"], k=chance.randint(1, 5))) for _ in range(400)
    }
    (directory / "a.en").write_text("".join(f"{text}\n" for text in sorted(pairs)))
    (directory / "a.de").write_text("".join(f"{text[::-1].upper()}\n" for text in sorted(pairs)))
    return {
        "seed": 3,
        "data": {"train": [{"files": [f"{directory}/a.en", f"{directory}/a.de"]}], "valid_size": 10},
        "tokenizer": {"vocab_size": 290},
        "model": {"num_layers": 1, "model_dim": 16, "num_heads": 2, "ff_dim": 32, "dropout": 0.1},
        "optim": {"rate": 3e-3, "name": "adamw", "weight_decay": 0.01},
        "schedule": {"name": "plateau", "warmup": 10, "patience": 1},
        "train": {
            "max_updates": UPDATES,
            "batch_tokens": 120,
            "accumulate": 2,
            "ema": 0.9,
            "log_every": 5,
            "validate_every": 12,
            "validate_sentences": 4,
            "save_every": 4,
            "average": 2,
            "metric": "chrf",
            "device": "cpu",
        },
    }


def session(directory: Path, out: Path) -> int:
    """Start a session in a child process: go on with the run, or begin it."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        torch.set_num_threads(1)
        config = resolve_config(json.loads((directory / "config.json").read_text()))
        if Run.exists(out):
            run = Run.open(out)
        else:
            prepared = prepare(config.data, config.tokenizer, seed=config.seed, cache=directory / "prepared")
            run = Run.create(out, config, prepared)
        status = train_run(run, NoDisplay()).exit_status
    finally:
        os._exit(status)


def finish(directory: Path, out: Path) -> float:
    """One session to the end of the run; the seconds it took."""
    began = time.perf_counter()
    _, status = os.waitpid(session(directory, out), 0)
    if status:
        raise SystemExit(f"{out}: a session ended with status {status}; see {out / 'log.txt'}")
    return time.perf_counter() - began


def kill(directory: Path, out: Path, seconds: float) -> str:
    """One session that is killed after so many seconds; where the kill found it."""
    child = session(directory, out)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not Run.exists(out):
        return "before the run was there"
    root = out / "checkpoints"
    if any(entry.name.endswith(".unfinished") for entry in root.iterdir()):
        return "inside a save"
    names = checkpoint.names(root)
    if not names:
        return "before the first checkpoint"
    return "after the last update" if int(names[-1]) == UPDATES else "between checkpoints"


def contents(out: Path) -> dict[str, bytes]:
    """What must be the same, file by file."""
    last = out / "checkpoints" / checkpoint.checkpoint_name(UPDATES)
    paths = [out / "metrics.jsonl", out / "best.json", *sorted(last.iterdir())]
    averaged = out / "checkpoints" / "averaged"
    paths += sorted(averaged.iterdir()) if averaged.exists() else []
    return {str(path.relative_to(out)): path.read_bytes() for path in paths}


def run_trials(directory: Path, kills: int, seed: int) -> tuple[list[str], Counter[str], float]:
    """Names of the trials that differ, where the kills fell, and the seconds of an uninterrupted run."""
    (directory / "config.json").write_text(json.dumps(plain_config(directory)))
    finish(directory, directory / "first")  # prepares the data
    length = finish(directory, directory / "whole")
    expected = contents(directory / "whole")
    assert "checkpoints/0000048/ema.safetensors" in expected
    chance = random.Random(seed)
    different, places = [], Counter[str]()
    for number in range(kills):
        out = directory / f"trial-{number}"
        places[kill(directory, out, chance.random() * length)] += 1
        if number % 4 == 3:
            places[kill(directory, out, chance.random() * length)] += 1
        finish(directory, out)
        found = contents(out)
        wrong = sorted(
            name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)
        )
        if wrong:
            different.append(f"trial {number}: {', '.join(wrong)}")
        shutil.rmtree(out)
    return different, places, length


def report(kills: int, different: list[str], places: Counter[str], length: float, seconds: float) -> str:
    lines = [
        "# Kill and resume",
        "",
        f"`python benchmarks/kill_resume.py {kills}`: {kills} runs of {UPDATES} updates (tiny Transformer, "
        f"torch {torch.__version__}, CPU, one thread; {length:.2f} s uninterrupted), each killed with "
        f"SIGKILL at a random moment, one in four twice, then resumed. {seconds:.0f} s in all.",
        "",
        "| runs | bit-identical | different |",
        "|---:|---:|---:|",
        f"| {kills} | {kills - len(different)} | {len(different)} |",
        "",
        "| where the kill fell | times |",
        "|---|---:|",
        *(f"| {place} | {count} |" for place, count in places.most_common()),
        "",
    ]
    return "\n".join(lines + [f"- {text}" for text in different])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kills", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-write", action="store_true", help=f"do not write {RESULTS.name}")
    options = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        different, places, length = run_trials(Path(directory), options.kills, options.seed)
    text = report(options.kills, different, places, length, time.perf_counter() - began)
    print(text)
    if not options.no_write:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(text, encoding="utf-8")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
