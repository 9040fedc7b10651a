"""`dragoman resume`: continue a run that was stopped."""

from typing import Annotated

import typer

from dragoman.cli import BEGAN
from dragoman.cli.options import Quiet, RunDirectory


def resume(
    run: RunDirectory,
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[field=value]...", help="Fields to change, such as train.max_updates=20000."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Continue a run from its newest checkpoint, as if it had never stopped."""
    from dragoman.training.api import resume as resume_run
    from dragoman.training.budget import Clock

    outcome = resume_run(run, overrides or [], quiet, Clock.began(BEGAN)).outcome
    if outcome is not None and outcome.exit_status:
        raise typer.Exit(outcome.exit_status)
