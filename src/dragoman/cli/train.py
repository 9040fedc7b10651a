"""`dragoman train`: from parallel text to a run directory."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli import BEGAN
from dragoman.cli.options import Cluster, DryRun, Quiet, Verbose
from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.training.draft import Source


def train(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES... [field=value]...",
            help="Source and target file, a table of pairs (tsv, csv, jsonl, parquet), a translation file "
            "(tmx, xliff, po, mo, OPUS zip), a directory with files of several languages, or a YAML recipe; "
            "and fields to set, such as model.num_layers=4.",
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Run directory.  [default: runs/SRC-TGT]")] = None,
    valid: Annotated[
        list[str] | None, typer.Option(metavar="FILES", help="Validation files: dev.en dev.de, or a table.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="SRC,TGT", help="The columns of a table, by name or number: en,de."),
    ] = None,
    directions: Annotated[
        str | None,
        typer.Option(metavar="en-de,de-en", help="Directions of files in several languages, or all."),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Total time; the learning rate falls to 0 within it.")
    ] = None,
    search: Annotated[
        bool, typer.Option("--search", help="Try a few configurations first, with a fifth of the minutes.")
    ] = False,
    half: Annotated[
        bool, typer.Option("--half", help="Train on half of the data too, to see what more data would bring.")
    ] = False,
    dry_run: DryRun = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    cluster: Cluster = None,
) -> None:
    """Train a translator. What is not given is chosen from the data and the machine.

    Ctrl-C saves and stops (exit status 130; SIGTERM: 143); `dragoman resume RUN` continues. Several
    processes: `torchrun --standalone --nproc-per-node N -m dragoman train ...`.
    """
    from dragoman.cli.clustered import encoding_on
    from dragoman.training.api import plan_and_train
    from dragoman.training.budget import Clock
    from dragoman.training.draft import split_arguments, with_columns, with_directions

    if cluster and not dry_run:
        raise UserError("--cluster: prepares the data alone; give --dry-run, then train without it")
    files, overrides = split_arguments(arguments)
    if columns is not None and directions is not None:
        raise UserError("--columns: the directions name the columns by their languages; leave it out")
    sources: "Sequence[Source]" = files
    if columns is not None:
        sources, valid = [with_columns(files, valid or [], columns)], []
    elif directions is not None:
        sources, valid = [with_directions(files, valid or [], directions)], []
    with encoding_on(cluster):
        run = plan_and_train(
            sources,
            out=out,
            overrides=overrides,
            valid=valid or [],
            quiet=quiet,
            dry_run=dry_run,
            verbose=verbose,
            minutes=minutes,
            search=search,
            half=half,
            clock=Clock.began(BEGAN),
        )
    if run is not None and run.outcome is not None and run.outcome.exit_status:
        raise typer.Exit(run.outcome.exit_status)
