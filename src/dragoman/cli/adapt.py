"""`dragoman adapt`: teach a run what a translation memory holds."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import Device, Quiet, on_device
from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.training.adapt import AdaptVerdict, RunsCompared

_SHOWN = 3
_TRIAL = "-trial"


def adapt(
    run: Annotated[Path, typer.Argument(help="Run directory to begin with; it stays as it is.")],
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES... [field=value]...",
            help="Memories: TMX, TSV, PO and others; and fields to set, such as optim.rate=1e-4.",
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="The new run directory.  [default: RUN-adapted]")] = None,
    share: Annotated[
        float,
        typer.Option(help="Share of the memory in training; the rest is rehearsal.", min=0.01, max=0.99),
    ] = 0.5,
    hold_out: Annotated[
        float, typer.Option(help="Share of the memory that is held out to compare.", min=0.01, max=0.5)
    ] = 0.2,
    updates: Annotated[int, typer.Option(help="Updates of training.", min=1)] = 300,
    tolerance: Annotated[
        float, typer.Option(help="chrF that may be lost on the run's own validation set.", min=0)
    ] = 0.5,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Train a run further on corrections, with rehearsal of its own data.

    The old and the new run are compared on held-out pairs of the memory and on the run's validation set. If
    the new one is not better, it stays in OUT-trial, and the exit status is 1. If it is interrupted, the same
    command continues where it stopped.
    """
    from dragoman.files import beside, explained, move
    from dragoman.runs.directory import Run
    from dragoman.runs.opening import open_translator, pick_device
    from dragoman.training.adapt import (
        adapt_config,
        compare_runs,
        corpora_for,
        make_parts,
        read_memory,
        write_parts,
    )
    from dragoman.training.api import plan_and_train
    from dragoman.training.draft import split_arguments

    files, overrides = split_arguments(arguments)
    if not files:
        raise UserError("adapt: give a translation memory after the run, such as corrections.tmx")
    opened = Run.open(run)
    pick_device(device)  # a mistake is told before anything is trained
    target = out or beside(opened.directory, "-adapted")
    trial, corpus = beside(target, _TRIAL), beside(target, "-corpus")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(f"{target}: already exists; choose another directory with --out, or remove it")
    parts = make_parts(opened, read_memory(opened, files), hold_out)
    with corpora_for(trial, corpus):
        write_parts(parts, corpus)
        if not quiet:
            held = f"{len(parts.held_out):,} of the memory and {len(parts.before):,} of the run"
            typer.echo(f"learn    {len(parts.learnt):,} pairs of the memory, {share:.0%} of the training")
            typer.echo(f"rehearse {len(parts.rehearsed):,} pairs of the run")
            typer.echo(f"held out {held}")
        made = plan_and_train(
            [adapt_config(opened, parts, corpus, share, updates)],
            out=trial,
            overrides=on_device(device, overrides),
            valid=[],
            quiet=quiet,
        )
    if made is None or (made.outcome is not None and made.outcome.exit_status):
        raise typer.Exit(1 if made is None or made.outcome is None else made.outcome.exit_status)
    old, new = (open_translator([one], "best", device) for one in (opened, Run.open(trial)))
    verdict = compare_runs(old, new, parts, tolerance)
    _print(verdict)
    if verdict.reason is not None:
        typer.echo(f"not better: {verdict.reason}")
        typer.echo(f"keep using {opened.directory}; the trial lies in {trial}")
        raise typer.Exit(1)
    with explained(target):
        move(trial, target)
    typer.echo(f"better: {target}")
    typer.echo(f"export with:    dragoman export {quote(str(target))}")


def _print(verdict: "AdaptVerdict") -> None:
    for title, side in (("memory, held out", verdict.memory), ("validation set", verdict.before)):
        if side.pairs:
            _print_side(title, side)


def _print_side(title: str, side: "RunsCompared") -> None:
    old, new = side.scores(side.old), side.scores(side.new)
    typer.echo(f"{title}: {len(side.pairs):,} pairs")
    for name in old:
        typer.echo(f"  {name:5} {old[name]:7.2f} → {new[name]:7.2f}   {new[name] - old[name]:+.2f}")
    changed = side.changed()
    worse = [number for change, number in changed if change < 0]
    better = [number for change, number in reversed(changed) if change > 0]
    same = len(side.pairs) - len(changed)
    typer.echo(f"  {len(better):,} translations are better, {len(worse):,} worse, {same:,} the same")
    for word, numbers in (("better", better), ("worse", worse)):
        for number in numbers[:_SHOWN]:
            source, reference = side.pairs[number]
            typer.echo(f"  {word}: {source}")
            typer.echo(f"    before    {side.old[number]}\n    after     {side.new[number]}")
            typer.echo(f"    reference {reference}")
