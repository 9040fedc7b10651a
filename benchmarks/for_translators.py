"""Everything that translators ask for, measured in one go: eleven trainings side by side on one GPU.

    python recipes/filter_noise.py MULTI30K DATA/noisy
    python benchmarks/for_translators.py DATA OUT --minutes 6

DATA has `libreoffice-help/en-de` and `en-fr`, `tatoeba/en-fr`, `contrastive-en-fr`, `multi30k`, `noisy`,
`europarl` (train, dev and test in en and de) and `qe-mlqe-pe` (train and test: .src, .mt, .zmean).
Started together:

    recipes/terms_and_memories.py    plain, with terms, with similar translations
    recipes/documents.py             without context, with context on both sides
    benchmarks/robust.py             careless sources in training or not; noisy pairs, cleaned or not
    recipes/add_language.py          three languages, and then a fourth
    recipes/confidence.py            confidence against chrF and against the scores of people

OUT gets a log of each, with every result as soon as it is known, and `tables.md`. Runs go to `--work`.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECIPES = HERE.parent / "recipes"


def commands(data: Path, work: Path, options: argparse.Namespace) -> dict[str, list[str]]:
    recipes = {
        name: [sys.executable, str(RECIPES / f"{name}.py")] for name in ("terms_and_memories", "documents")
    }
    minutes = ["--minutes", str(options.minutes)]
    fields = [part for field in options.set for part in ("--set", field)]
    device = ["--set", f"train.device={options.device}"]
    found = {
        "terms": [
            *recipes["terms_and_memories"], str(data / "libreoffice-help/en-de"), str(work / "terms"),
            *minutes, *device, *fields,
        ]
    }  # fmt: skip
    for arm in ("none", "both"):
        found[f"context-{arm}"] = [
            *recipes["documents"], str(data), str(work / "context"), "--arm", arm, *minutes, *device, *fields,
        ]  # fmt: skip
    found["robust"] = [
        sys.executable, str(HERE / "robust.py"), str(data / "multi30k"), "--noisy", str(data / "noisy"),
        "--work", str(work / "robust"), "--seeds", "1", "--device", options.device, *minutes,
        *(part for field in options.set for part in ("--field", field)),
    ]  # fmt: skip
    found["languages"] = [
        sys.executable, str(RECIPES / "add_language.py"), str(data / "multi30k"), str(work / "languages"),
        "--minutes", str(options.minutes / 2), "--device", options.device, *fields,
    ]  # fmt: skip
    found["confidence"] = [
        sys.executable, str(RECIPES / "confidence.py"), str(work / "confidence"),
        "--train", str(data / "europarl"), *minutes, *device, *fields,
        "--source", str(data / "europarl/test.en.gz"), "--reference", str(data / "europarl/test.de.gz"),
        "--human", str(data / "qe-mlqe-pe"),
    ]  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--work", type=Path, default=Path("runs/for_translators"))
    parser.add_argument("--minutes", type=float, default=6.0, help="for each training")
    parser.add_argument("--seconds", type=float, default=560.0, help="for everything")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", action="append", help="one of the logs' names; all by default")
    parser.add_argument("--set", action="append", default=[], help="field=value of every run, for trials")
    options = parser.parse_args()
    began = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    started = {}
    for name, command in commands(options.data, options.work, options).items():
        if options.only is None or name in options.only:
            log = (options.out / f"{name}.log").open("w")
            started[name] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    for name, process in started.items():
        try:
            code = process.wait(max(0.0, options.seconds - (time.monotonic() - began)))
        except subprocess.TimeoutExpired:
            process.kill()
            code = "out of time"
        print(f"{name}: {code} after {time.monotonic() - began:.0f} s", flush=True)
    parts = []
    for name in started:
        text = (options.out / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        parts.append(f"## {name}\n\n{text[-6000:]}")
    (options.out / "tables.md").write_text("\n".join(parts), encoding="utf-8")
    print("\n".join(parts))


if __name__ == "__main__":
    main()
