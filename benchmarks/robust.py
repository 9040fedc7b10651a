"""What is a careless source worth in training, and what is cleaning worth?

    python benchmarks/robust.py DATA --jobs 8          DATA has Multi30k: train, val and test_2016_flickr, .gz

Two questions, one pool of runs of recipes/multi30k-en-de.yaml on one GPU:

    noise      objective.source_noise 0, 0.05 and 0.1, scored on the test set as it is, in upper case, in
               lower case, with typing errors, and with other marks
    cleaning   15% of the training pairs spoilt as benchmarks/cleaning.py does it, with and without
               data.clean.drop_suspects

Each run is a process of its own, `--jobs` of them at once. A result is a line of `--results` as soon as it is
there, and what is there is not run again. Every call prints the tables of all results.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from cleaning import spoilt
from common import write_table
from dragoman.data.formats import read_lines
from dragoman.data.seeded import Dice
from dragoman.data.sloppy import WAYS

RECIPE = Path(__file__).resolve().parent.parent / "recipes" / "multi30k-en-de.yaml"
TEST = "test_2016_flickr"
SETS = ("as it is", "upper", "lower", "typos", "marks")
SHARES = (0.0, 0.05, 0.1)
SPOILT = {"spoilt": [], "spoilt, cleaned": ["data.clean.drop_suspects=[all]", "data.clean.drop_copies=true"]}
Arm = tuple[str, int]


def write_gz(path: Path, lines: Sequence[str]) -> None:
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


def make_data(data: Path, work: Path) -> None:
    """Test sets with careless sources, and a spoilt training set, beside the good one."""
    src, tgt, foreign = (list(read_lines(data / f"train.{lang}.gz")) for lang in ("en", "de", "fr"))
    places = spoilt(src, tgt, foreign)
    print({kind: len(own) for kind, own in places.items()}, "of", len(src), "pairs are spoilt", flush=True)
    write_gz(work / "spoilt.en.gz", src)
    write_gz(work / "spoilt.de.gz", tgt)
    lines = list(read_lines(data / f"{TEST}.en.gz"))
    write_gz(work / "test.as it is.en.gz", lines)
    for way in SETS[1:]:
        write_gz(work / f"test.{way}.en.gz", [WAYS[way](line, Dice(7, n)) for n, line in enumerate(lines)])


def overrides(arm: str, data: Path, work: Path) -> list[str]:
    train = [str(data / f"train.{lang}.gz") for lang in ("en", "de")]
    fields: list[str] = []
    if arm in SPOILT:
        train = [str(work / f"spoilt.{lang}.gz") for lang in ("en", "de")]
        fields = SPOILT[arm]
    else:
        fields = [f"objective.source_noise={arm}"]
    files = json.dumps([{"files": train}])
    valid = json.dumps([{"files": [str(data / f"val.{lang}.gz") for lang in ("en", "de")]}])
    return [f"data.train={files}", f"data.valid={valid}", "data.test=[]", *fields]


def run_arm(arm: Arm, options: argparse.Namespace) -> dict[str, Any]:
    """Train and score one run in processes of its own."""
    name, seed = arm
    out = options.work / f"{name.replace(', ', '-')}-{seed}"
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}

    def dragoman(*arguments: object) -> str:
        command = [sys.executable, "-m", "dragoman", *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{arm}: {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    fields = [f"seed={seed}", f"train.max_updates={options.updates}", f"train.device={options.device}"]
    began = time.monotonic()
    dragoman(
        "train",
        RECIPE,
        "-q",
        "--out",
        out,
        *fields,
        *overrides(name, options.data, options.work),
        *options.field,
    )
    seconds = time.monotonic() - began
    bleu = {}
    for kind in SETS if name not in SPOILT else SETS[:1]:
        src, tgt = options.work / f"test.{kind}.en.gz", options.data / f"{TEST}.de.gz"
        dragoman("evaluate", out, src, tgt, "--bootstrap", 0, "--device", options.device, "--name", kind)
        report = json.loads((out / "evaluation" / kind / "report.json").read_text("utf-8"))
        bleu[kind] = next(metric["value"] for metric in report["metrics"] if metric["name"] == "BLEU")
    return {"arm": name, "seed": seed, "seconds": seconds, "bleu": bleu}


def told(values: Sequence[float]) -> str:
    spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    return f"{mean(values):.1f}{spread}" if values else "–"


def show(results: Sequence[dict[str, Any]], updates: int, keep: bool) -> None:
    def row(arm: str, kinds: Sequence[str]) -> list[str]:
        own = [result for result in results if result["arm"] == arm]
        scores = [told([result["bleu"][kind] for result in own if kind in result["bleu"]]) for kind in kinds]
        seconds = told([result["seconds"] for result in own])
        return [arm, str(len(own)), *scores, seconds]

    note = (
        f"Multi30k English-German, recipes/multi30k-en-de.yaml with {updates:,} updates, BLEU on {TEST}: "
        "mean ± standard deviation over seeds. Seconds of training with several runs on one card."
    )
    shares = [str(share) for share in SHARES]
    title = "Careless sources in training"
    rows = [row(arm, SETS) for arm in shares]
    write_table("source_noise", title, ["share", "seeds", *SETS, "seconds"], rows, note, keep)
    rows = [["good pairs", *row(shares[0], SETS[:1])[1:]], *(row(arm, SETS[:1]) for arm in SPOILT)]
    header = ["training pairs", "seeds", "BLEU", "seconds"]
    write_table("cleaning_bleu", "BLEU with and without cleaning", header, rows, note, keep)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("runs/robust"))
    parser.add_argument("--results", type=Path, help="a file of JSON lines; by default in --work")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--updates", type=int, default=6000)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--device", default="cuda")
    parser.add_argument(
        "--questions", nargs="+", choices=["noise", "cleaning"], default=["noise", "cleaning"]
    )
    parser.add_argument("--keep", action="store_true", help="write the tables to benchmarks/results")
    parser.add_argument(
        "--field", action="append", default=[], help="another field of the recipe, for trials"
    )
    options = parser.parse_args()
    options.data, options.work = options.data.resolve(), options.work.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    kept = options.results or options.work / "results.jsonl"
    make_data(options.data, options.work)
    results = [json.loads(line) for line in kept.read_text("utf-8").splitlines()] if kept.exists() else []
    asked = {"noise": [str(share) for share in SHARES], "cleaning": ["0.0", *SPOILT]}
    arms = dict.fromkeys(arm for question in options.questions for arm in asked[question])
    known = {(result["arm"], result["seed"]) for result in results}
    todo = [(arm, seed) for seed, arm in product(options.seeds, arms) if (arm, seed) not in known]
    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        for result in pool.map(lambda arm: run_arm(arm, options), todo):
            print(json.dumps(result), flush=True)
            results.append(result)
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
    show(results, options.updates, options.keep)


if __name__ == "__main__":
    main()
