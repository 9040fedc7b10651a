"""`dragoman lab`: claims of lectures, each tested by one command."""

import shutil
import sys
import textwrap
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import Device
from dragoman.errors import UserError, missing_extra

if TYPE_CHECKING:
    from dragoman.lab.book import Lab
    from dragoman.lab.experiment import Experiment
    from dragoman.lab.page import ExperimentReport
    from dragoman.training.display import Display


def lab(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME... [field=value]...]",
            help="Experiments to run, or all; none lists them. Fields are set for each of their runs.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small runs: under a minute on two cores.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of pages, runs and data.")] = Path("lab"),
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with train, valid and test pairs of your own, for the made-up language."),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Runs to train at once, each in a process of its own.")
    ] = 1,
    cores: Annotated[int, typer.Option(min=1, help="With --jobs: threads of each process.")] = 1,
    device: Device = "auto",
) -> None:
    """Test a claim of the lectures: train, measure, draw, decide.

    Ctrl-C saves and stops; the same command continues. Runs are ordinary run directories in OUT/runs.
    """
    if not arguments:
        print_list()
        return
    for module, extra in (("torch", "train"), ("matplotlib", "plots")):
        if find_spec(module) is None:
            raise missing_extra(module, extra, "the lab")
    names = [argument for argument in arguments if "=" not in argument]
    changes = [argument for argument in arguments if "=" in argument]
    if not names:
        raise UserError(f"lab: expected the name of an experiment before {changes[0]}")
    if data is not None and not data.is_dir():
        raise UserError(f"--data {data}: there is no such folder")
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out}: this is a file; give the name of a folder")
    from dragoman.config import apply_overrides, check_given
    from dragoman.lab.bench import Interrupted
    from dragoman.lab.book import Lab
    from dragoman.lab.catalogue import all_experiments, experiment_named
    from dragoman.runs.config import RunConfig
    from dragoman.runs.opening import pick_device

    pick_device(device)
    check_given(RunConfig, apply_overrides({}, changes))
    every = list(all_experiments().values())
    chosen = every if "all" in names else [experiment_named(name) for name in names]
    place = Lab(out, quick, changes, data, device)
    try:
        failed = run_in_order(place, chosen) if jobs == 1 else run_many(place, chosen, jobs, cores)
    except Interrupted as stopped:
        typer.echo("stopped; the same command continues", err=True)
        raise typer.Exit(stopped.status) from None
    finally:
        if (book := place.write_book()) is not None:
            typer.echo(f"all pages: {book}")
    for name, why in failed.items():
        typer.echo(f"failed: {name}: {why}", err=True)
    if failed:
        raise typer.Exit(1)


def run_in_order(place: "Lab", chosen: "list[Experiment]") -> dict[str, str]:
    """One after another. Of several, one that fails does not stop the others."""
    failed: dict[str, str] = {}
    for experiment in chosen:
        typer.echo(f"{experiment.name}: {experiment.claim}")
        began = time.monotonic()
        try:
            report = place.run(experiment, progress_of)
        except UserError as error:
            if len(chosen) == 1:
                raise
            failed[experiment.name] = str(error)
            typer.echo(f"  failed: {error}\n")
            continue
        print_experiment(report)
        page = place.folder / experiment.name / f"{experiment.name}.html"
        typer.echo(f"  {page}  ({time.monotonic() - began:.0f} s)")
        typer.echo(f"  look inside: {report.look}\n" if report.look else "")
    return failed


def run_many(place: "Lab", chosen: "list[Experiment]", jobs: int, cores: int) -> dict[str, str]:
    from dragoman.lab.pool import run_at_once

    began = time.monotonic()
    return run_at_once(
        place, chosen, jobs, cores, lambda said: typer.echo(f"{time.monotonic() - began:5.0f} s  {said}")
    )


def progress_of(label: str, seed: int, number: int, count: int) -> "Display":
    """A line for each run, which follows its updates on a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn

    from dragoman.training.display import NoDisplay

    text = f"  run {number} of {count}: {label}, seed {seed}"
    if not sys.stdout.isatty():
        typer.echo(text)
        return NoDisplay()

    class Line(NoDisplay):
        def __init__(self) -> None:
            self.bar = Progress(TextColumn(text, markup=False), BarColumn(bar_width=24), transient=True)
            self.task = self.bar.add_task("", total=None)
            self.bar.start()

        def tick(self, update: int, total: int | None) -> None:
            self.bar.update(self.task, completed=update, total=total)

        def close(self) -> None:
            self.bar.stop()

    return Line()


def print_experiment(report: "ExperimentReport") -> None:
    from dragoman.lab.page import spread_note, table_of

    table = table_of(report.numbers)
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        typer.echo("    " + "  ".join(cells).rstrip())
    if note := spread_note(report.numbers):
        typer.echo(f"    {report.experiment.cell}; {note}")
    typer.echo(f"  {report.verdict}")


def print_list(echo: Callable[[str], None] = typer.echo) -> None:
    from dragoman.lab.catalogue import all_experiments
    from dragoman.lab.experiment import LECTURES

    experiments = list(all_experiments().values())
    width = max(len(experiment.name) for experiment in experiments)
    for number, title in LECTURES.items():
        echo(f"\n{number}. {title}")
        for experiment in experiments:
            if experiment.lecture == number:
                mark = " " if experiment.trains else "·"
                echo(_wrapped(f"  {mark} {experiment.name:<{width}}  ", experiment.claim))
    echo("\n· needs no training, and takes seconds.")
    echo("dragoman lab NAME --quick runs a small one; dragoman lab all makes the book.")


def _wrapped(name: str, claim: str) -> str:
    """In a terminal long claims go on below themselves; in a pipe an experiment is a line."""
    if not sys.stdout.isatty():
        return name + claim
    room = max(24, shutil.get_terminal_size().columns - len(name) - 1)
    return name + f"\n{' ' * len(name)}".join(textwrap.wrap(claim, room, break_on_hyphens=False))
