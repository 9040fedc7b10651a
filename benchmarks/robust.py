"""What is a careless source worth in training, and what is cleaning worth?

    python recipes/filter_noise.py DATA NOISY
    python benchmarks/robust.py DATA --noisy NOISY --minutes 5 --jobs 4

DATA has Multi30k: train, val and test_2016_flickr in en and de, gzipped or not; NOISY has a corpus of which
30% are noise of six kinds. Two questions, one pool of runs on one GPU, each in the same minutes and with the
settings that the autopilot chooses:

    noise      objective.source_noise 0 and 0.05, scored on the test set as it is, in upper case, in lower
               case, with typing errors, and with other marks
    cleaning   the noisy corpus with and without data.clean.drop_suspects and drop_copies, which leave out
               what `dragoman filter` does without a model

Each run is a process of its own, `--jobs` of them at once. A result is a line of `--results` as soon as it is
there, and what is there is not run again. Every call prints the tables of all results.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import dragoman
from common import write_table
from dragoman.data.formats import read_lines
from dragoman.data.seeded_random import Dice
from dragoman.data.typing_noise import WAYS
from dragoman.errors import run_script
from dragoman.evaluate.metrics import bleu

TEST = "test_2016_flickr"
SETS = ("as it is", "upper", "lower", "typos", "marks")
QUICK = ("train.validations=6", "train.tune_search=false", "train.report=false", "train.samples=0")
NOISE = {
    "sources as they are": ["objective.source_noise=0"],
    "careless sources 0.05": ["objective.source_noise=0.05"],
}
CLEANING = {
    "noisy": [],
    "noisy, cleaned": ["data.clean.drop_suspects=[all]", "data.clean.drop_copies=true"],
}
Arm = tuple[str, int]


def files(directory: Path, stem: str) -> list[str]:
    return [str(next(directory.glob(f"{stem}.{code}*"))) for code in ("en", "de")]


def test_sets(data: Path) -> dict[str, list[str]]:
    """The sources of the test set, as they are and written carelessly."""
    lines = list(read_lines(files(data, TEST)[0]))
    return {
        kind: [WAYS[kind](line, Dice(7, n)) for n, line in enumerate(lines)] if kind in WAYS else lines
        for kind in SETS
    }


def run_arm(arm: Arm, options: argparse.Namespace) -> dict[str, Any]:
    """Train one run in a process of its own."""
    name, seed = arm
    out = options.work / f"{name.replace(', ', '-').replace(' ', '-')}-{seed}"
    train = files(options.noisy, "noisy") if name in CLEANING else files(options.data, "train")
    valid = files(options.data, "val")
    command = [sys.executable, "-m", "dragoman", "train", *train, "--valid", valid[0], "--valid", valid[1]]
    command += ["--out", str(out), "--minutes", str(options.minutes), f"seed={seed}", *QUICK]
    command += [f"train.device={options.device}", *(NOISE | CLEANING)[name], *options.field]
    began = time.monotonic()
    with (options.work / f"{out.name}.log").open("w") as log:
        code = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
    if code:
        raise SystemExit(f"{arm}: {(options.work / f'{out.name}.log').read_text()[-800:]}")
    return {"arm": name, "seed": seed, "seconds": time.monotonic() - began, "run": str(out)}


def measured(result: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """A result with the run's updates and its BLEU on all test sets."""
    run = dragoman.load(result["run"], device=options.device)
    references = list(read_lines(files(options.data, TEST)[1]))
    lines = (Path(result["run"]) / "metrics.jsonl").read_text("utf-8").splitlines()
    return result | {
        "updates": max(json.loads(line).get("update", 0) for line in lines),
        "bleu": {
            kind: bleu(run.translate(sources), references)
            for kind, sources in test_sets(options.data).items()
        },
    }


def told(values: Sequence[float], digits: int = 1) -> str:
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):,.{digits}f}{spread}" if values else "–"


def show(results: Sequence[dict[str, Any]], minutes: float, keep: bool) -> None:
    def row(arm: str) -> list[str]:
        own = [result for result in results if result["arm"] == arm]
        scores = [told([result["bleu"][kind] for result in own]) for kind in SETS]
        return [arm, str(len(own)), told([result["updates"] for result in own], 0), *scores]

    note = (
        f"Multi30k English-German, {minutes:g} minutes with what the autopilot chooses, several runs on one "
        f"card; BLEU on {TEST}: mean ± standard deviation over seeds. «noisy»: 30% of the pairs are noise of "
        "six kinds (recipes/filter_noise.py); «cleaned»: without what the rules of `dragoman filter` find."
    )
    rows = [row(arm) for arm in (*NOISE, *CLEANING)]
    header = ["trained on", "seeds", "updates", *SETS]
    write_table("robust", "Careless sources, noise and cleaning", header, rows, note, keep)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--noisy", type=Path, help="the OUT of recipes/filter_noise.py")
    parser.add_argument("--work", type=Path, default=Path("runs/robust"))
    parser.add_argument("--results", type=Path, help="a file of JSON lines; by default in --work")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--keep", action="store_true", help="write the table to benchmarks/results")
    parser.add_argument("--field", action="append", default=[], help="another field, for trials")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    kept = options.results or options.work / "results.jsonl"
    results = [json.loads(line) for line in kept.read_text("utf-8").splitlines()] if kept.exists() else []
    arms = [*NOISE, *(CLEANING if options.noisy is not None else ())]
    known = {(result["arm"], result["seed"]) for result in results}
    todo = [(arm, seed) for seed, arm in product(options.seeds, arms) if (arm, seed) not in known]
    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        for result in pool.map(lambda arm: run_arm(arm, options), todo):
            results.append(measured(result, options))
            print(json.dumps(results[-1]), flush=True)
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(results[-1]) + "\n")
    show(results, options.minutes, options.keep)


if __name__ == "__main__":
    run_script(main)
