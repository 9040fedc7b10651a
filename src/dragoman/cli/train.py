"""`dragoman train`: from parallel text to a run directory."""

from pathlib import Path
from typing import Annotated

import typer


def train(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES... [field=value]...",
            help="Source and target file, a table of pairs (tsv, csv, jsonl, parquet), a translation file "
            "(tmx, xliff, po, mo, OPUS zip), or a YAML recipe; "
            "and fields to set, such as model.num_layers=4.",
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Run directory.  [default: runs/SRC-TGT]")] = None,
    valid: Annotated[
        list[str] | None, typer.Option(help="Validation file; give it twice for source and target.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and stop.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; log.txt has it all.")] = False,
) -> None:
    """Train a translator. What is not given is chosen from the data and the machine.

    Ctrl-C saves and stops (exit status 130; SIGTERM: 143); `dragoman resume RUN` goes on.
    """
    from dragoman.train.api import execute
    from dragoman.train.display import make_display
    from dragoman.train.plan import make_plan, split_arguments

    files, overrides = split_arguments(arguments)
    display = make_display(quiet)
    try:
        plan = make_plan(files, display, out=out, overrides=overrides, valid=valid or [])
        display.table("Plan", plan.rows())
        if dry_run:
            return
        run = execute(plan, display)
    finally:
        display.close()
    if run.outcome is not None and run.outcome.exit_status:
        raise typer.Exit(run.outcome.exit_status)
