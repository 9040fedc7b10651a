"""Czech for a run of English, German and French: what the old directions lose, and what the new ones reach.

    python recipes/add_language.py DATA OUT [--minutes 3] [--updates 1500]

DATA has train, val and test_2016_flickr in cs, de, en and fr (Multi30k). A run of six directions is trained
for `--minutes`; then `dragoman add-language` teaches it en-cs and cs-en in `--updates` updates. Both are
measured on the test set, in all old directions, in the new ones, and in those from and to Czech that have no
pairs.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import dragoman
from dragoman.data.formats import read_lines
from dragoman.errors import run_script
from dragoman.evaluate.metrics import bleu, chrf

OLD = tuple(permutations(("en", "de", "fr"), 2))
NEW = (("en", "cs"), ("cs", "en"))
ZERO_SHOT = (("de", "cs"), ("fr", "cs"), ("cs", "de"), ("cs", "fr"))
QUICK = ("train.validations=5", "train.tune_search=false", "train.report=false", "train.samples=0")
Languages = tuple[str, str]


def gathered(data: Path, out: Path, codes: Sequence[str]) -> Path:
    """A directory with the training and validation files of these languages."""
    out.mkdir(parents=True, exist_ok=True)
    for part in ("train", "val"):
        for code in codes:
            (file,) = data.glob(f"{part}.{code}*")
            shutil.copy(file, out / file.name)
    return out


def command(*arguments: object) -> float:
    """Run dragoman; the seconds that it took."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "dragoman", *map(str, arguments)], check=True)
    return time.monotonic() - began


def measure(run: Path, data: Path, pairs: Sequence[Languages], given: argparse.Namespace) -> dict[str, float]:
    """BLEU by direction; chrF is printed beside it."""
    found = {}
    for src, tgt in pairs:
        texts, references = (
            list(read_lines(next(data.glob(f"test_2016_flickr.{code}*"))))[: given.sentences]
            for code in (src, tgt)
        )
        translator = dragoman.load(run, to=tgt, source=src, zero_shot=True, device=given.device)
        outputs = translator.translate(texts)
        found[f"{src}-{tgt}"] = bleu(outputs, references)
        told = {"run": run.name, "direction": f"{src}-{tgt}", "bleu": found[f"{src}-{tgt}"]}
        print(json.dumps(told | {"chrf": chrf(outputs, references)}), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--updates", type=int, default=1500)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--sentences", type=int, default=None, help="most of the test set")
    parser.add_argument("--set", action="append", default=[], help="field=value of the first training")
    given = parser.parse_args()
    device = f"train.device={given.device}"
    old, new = given.out / "old", given.out / "new"
    seconds = command(
        "train", gathered(given.data, given.out / "three", ("en", "de", "fr")), "--out", old, "--minutes",
        given.minutes, device, *QUICK, *given.set,
    )  # fmt: skip
    before = measure(old, given.data, OLD, given)
    added = command(
        "add-language", old, gathered(given.data, given.out / "czech", ("en", "cs")), "--out", new,
        "--updates", given.updates, "--tolerance", 100, "--device", given.device, device,
    )  # fmt: skip
    after = measure(new, given.data, (*OLD, *NEW, *ZERO_SHOT), given)
    lines = ["| direction | before | after |", "|---|---|---|"]
    for name, score in after.items():
        lines.append(f"| {name} | {f'{before[name]:.1f}' if name in before else ''} | {score:.1f} |")
    lines.append(f"\n{seconds:.0f} s of training, {added:.0f} s for the language")
    (given.out / "table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    run_script(main)
