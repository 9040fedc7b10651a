"""Every model on Multi30k English-German with the same data, budget and search: a table, and a picture of
BLEU by source length.

    python recipes/multi30k_models.py --out runs/models --at-once 6

Stand beside the folder `multi30k`, as for the recipe that all of these are variations of. The table and the
picture (PNG and SVG, with its numbers in a TSV file) are written beside the runs; results.md shows them.
"""

import argparse
import json
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dragoman.checkpoint.model import load_model
from dragoman.errors import run_script
from dragoman.runs.records import read_records

RECIPE = Path(__file__).parent / "multi30k-en-de.yaml"
SCORES = ("dot", "scaled_dot", "general", "concat", "additive", "cosine", "location")
WITHOUT, WITH, TRANSFORMER = "LSTM, no attention", "LSTM, additive", "Transformer-tiny"


def recurrent(**fields: str) -> tuple[str, ...]:
    """What they share was found for the LSTM with the additive score; results.md says how."""
    section = ", ".join(f"{name}: {value}" for name, value in fields.items())
    model = f"model={{preset: lstm, model_dim: 512, dropout: 0.4, {section}}}"
    return (model, "optim.rate=2e-3", "schedule.warmup=300")


MODELS: dict[str, tuple[str, ...]] = {
    "Markov, skips and mask": ("model={preset: markov-skips}",),
    WITHOUT: recurrent(attention="none"),
    **{f"LSTM, {score}": recurrent(attention=score, wiring="luong") for score in SCORES},
    "GRU, additive": recurrent(attention="additive", wiring="luong", cell="gru"),
    "ConvS2S": ("model={preset: convs2s, dropout: 0.2}", "optim.rate=1e-3", "schedule.warmup=500"),
    TRANSFORMER: (),
}
IN_THE_PICTURE = (WITHOUT, WITH, TRANSFORMER)
DRAGOMAN = (sys.executable, "-m", "dragoman")


def directory_of(out: Path, name: str) -> Path:
    return out / name.lower().replace(",", "").replace(" ", "-").replace("_", "-")


def train_and_evaluate(out: Path, name: str, overrides: list[str]) -> None:
    """What the commands print goes into a file beside the run."""
    directory = directory_of(out, name)
    with directory.with_suffix(".log").open("w") as log:
        for command in (
            (*DRAGOMAN, "train", str(RECIPE), "--out", str(directory), *MODELS[name], *overrides),
            (*DRAGOMAN, "evaluate", str(directory), "--name", "test"),
        ):
            subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=True)


def row_of(out: Path, name: str) -> str:
    directory = directory_of(out, name)
    report = json.loads((directory / "evaluation" / "test" / "report.json").read_text())
    metrics = {metric["name"]: metric for metric in report["metrics"]}
    figures = [f"{metrics[key]['value']:.1f} ± {metrics[key]['half_width']:.1f}" for key in ("BLEU", "chrF2")]
    numel = sum(parameter.numel() for parameter in load_model(directory).model.parameters())
    speeds = [
        r["tokens_per_second"] for r in read_records(directory / "timing.jsonl") if "tokens_per_second" in r
    ]
    speed = f"{statistics.median(speeds):,.0f}" if speeds else "–"
    return f"| {name} | {' | '.join(figures)} | {f'{numel / 1e6:.2f} M' if numel else '–'} | {speed} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/models"))
    parser.add_argument("--at-once", type=int, default=1, help="runs that share the machine")
    parser.add_argument("--only", nargs="*", default=list(MODELS), help="names of models")
    parser.add_argument("overrides", nargs="*", help="such as train.max_updates=4000")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(options.at_once) as pool:
        list(pool.map(lambda name: train_and_evaluate(options.out, name, options.overrides), options.only))
    table = ["| model | BLEU | chrF2 | parameters | target tokens/s |", "|---|---|---|---|---|"]
    table += [row_of(options.out, name) for name in options.only]
    (options.out / "table.md").write_text("\n".join(table) + "\n")
    print("\n".join(table))
    drawn = [name for name in IN_THE_PICTURE if name in options.only]
    labels = [part for name in drawn for part in ("--label", name)]
    runs = [str(directory_of(options.out, name)) for name in drawn]
    subprocess.run([*DRAGOMAN, "compare", *runs, *labels, "--out", str(options.out / "lengths")], check=True)


if __name__ == "__main__":
    run_script(main)
