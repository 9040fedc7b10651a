"""`dragoman demo`: a real task, learnt from nothing in minutes, with no download."""

import shlex
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.errors import missing_extra

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.data.demo_dates import DatePair, DateTask
    from dragoman.runs.directory import Run

SHOWN = (
    "sábado, 9 de mayo de 2026",
    "the 9th of may, 2026",
    "9 мая 26 г.",
    "2026年5月9日土曜日",
    "9. touko 2026",
)


def demo(
    out: Annotated[Path, typer.Option(help="Run directory; the data are written beside it.")] = Path(
        "runs/demo"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="About half the time, less accurate.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the data and of the training.")] = 1,
) -> None:
    """Train a small model in minutes: dates in 41 languages into ISO 8601."""
    for module in ("torch", "babel"):
        if find_spec(module) is None:
            raise missing_extra(module, "demo", "the demo")
    from rich.console import Console

    from dragoman.data import demo_dates
    from dragoman.files import beside
    from dragoman.training.api import execute
    from dragoman.training.display import make_display
    from dragoman.training.plan import make_plan

    began = time.monotonic()
    files = demo_dates.paths(beside(out, ".data"))
    config = recipe(files, seed, quick)
    refuse_other_run(out, config)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print("Dates as people write them, in 41 languages, into ISO 8601:")
    console.print(f"    {SHOWN[0]}  →  2026-05-09\n")
    task = demo_dates.draw_dates(seed, train_size=100_000, valid_size=500, test_size=1000)
    demo_dates.write_dates(files, task)
    display = make_display(quiet=False)
    try:
        plan = make_plan([config], display, out=out)
        display.table("Plan", plan.rows())
        run = execute(plan, display)
    finally:
        display.close()
    if run.outcome is not None and run.outcome.exit_status:
        raise typer.Exit(run.outcome.exit_status)
    show_results(console, run, task)
    console.print(f"All of it took {time.monotonic() - began:.0f} seconds.\n")
    show_next(console, out, files)


def refuse_other_run(out: Path, config: Mapping[str, Any]) -> None:
    """Before anything is written: the pairs beside a run are the ones it was trained and tested on."""
    from dragoman.errors import UserError
    from dragoman.learning.resolve import resolve_config
    from dragoman.runs.config import config_differences
    from dragoman.runs.directory import Run

    if Run.exists(out) and config_differences(Run.open(out).config, resolve_config(config)):
        raise UserError(f"{out}: there is a run with another seed or length; choose another place with --out")


def recipe(files: Mapping[str, Path], seed: int, quick: bool) -> dict[str, Any]:
    """A small Transformer: pre-norm takes a high rate, and few passes over many pairs need no dropout."""
    updates = 600 if quick else 1400
    return {
        "seed": seed,
        "data": {
            "train": [{"files": [str(files["train"])]}],
            "valid": [{"files": [str(files["valid"])]}],
            "src_lang": "date",
            "tgt_lang": "iso",
        },
        "tokenizer": {"kind": "bpe", "vocab_size": 1500},
        "model": {
            "kind": "transformer",
            "num_layers": 2,
            "num_decoder_layers": 1,
            "model_dim": 128,
            "num_heads": 4,
            "ff_dim": 256,
            "dropout": 0.0,
            "norm": "pre",
        },
        "objective": {"label_smoothing": 0.0},
        "optim": {"name": "adam", "rate": 2e-3},
        "schedule": {"name": "cosine", "warmup": 100},
        "train": {
            "max_updates": updates,
            "batch_tokens": 2048,
            "log_every": 20,
            "validate_every": updates // 4,
            "save_every": updates // 10,
            "keep": 10,  # the studio shows how its attention comes about
        },
        "search": {"beam": 4},
    }


def show_results(console: "Console", run: "Run", task: "DateTask") -> None:
    """Exact match on what training never saw, the languages with most mistakes, and some translations."""
    from babel import Locale
    from rich.table import Table

    translator = run.translator()
    sets = {"held-out dates": task.test_dates, "held-out ways of writing": task.test_ways}
    outputs = {name: translator.translate([e.src for e in examples]) for name, examples in sets.items()}
    table = Table(title="Exact match on what training never saw", title_justify="left")
    for heading in ("test", "dates", "right", "exact match"):
        table.add_column(heading, justify="left" if heading == "test" else "right")
    by_locale: dict[str, list[bool]] = defaultdict(list)
    wrong: list[tuple[DatePair, str]] = []
    for name, examples in sets.items():
        right = [out == example.tgt for out, example in zip(outputs[name], examples, strict=True)]
        table.add_row(name, str(len(right)), str(sum(right)), percent(right))
        for example, out, good in zip(examples, outputs[name], right, strict=True):
            by_locale[example.locale].append(good)
            if not good:
                wrong.append((example, out))
    console.print()
    console.print(table)
    weakest = sorted(by_locale, key=lambda locale: sum(by_locale[locale]) / len(by_locale[locale]))[:5]
    weakest = [locale for locale in weakest if not all(by_locale[locale])]
    if weakest:
        names = (f"{Locale.parse(locale).english_name} {percent(by_locale[locale])}" for locale in weakest)
        console.print(f"Weakest languages: {', '.join(names)}.")
    console.print("\nSome translations:")
    for source, text in zip(SHOWN, translator.translate(SHOWN), strict=True):
        console.print(f"    {source}  →  {text}")
    for example, text in wrong[:3]:
        console.print(f"    {example.src}  →  {text}  (wrong: it is {example.tgt})")
    console.print()


def show_next(console: "Console", out: Path, files: Mapping[str, Path]) -> None:
    program = "dragoman" if shutil.which("dragoman") else sys.argv[0]  # as in  make demo
    run, test = shlex.quote(str(out)), shlex.quote(str(files["test_dates"]))
    console.print("What to type next:")
    for arguments, purpose in (
        (f'translate {run} "9 mai 2026"', "translate with what you have just trained"),
        (f'tokenize {run} "9 mai 2026" --steps', "see the pieces that it reads"),
        (
            f"studio {run} --text {shlex.quote(SHOWN[0])} --browser",
            "see what it reads for year, month and day",
        ),
        (f"evaluate {run} {test}", "metrics with confidence intervals"),
        ("train your.en your.de", "train a translator on your own files"),
        ("--help", "all commands"),
    ):
        console.print(f"    {program} {arguments}\n        {purpose}")


def percent(right: Sequence[bool]) -> str:
    return f"{100 * sum(right) / len(right):.1f}%"
