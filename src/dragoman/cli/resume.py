"""`dragoman resume`: go on with a run that was stopped."""

from typing import Annotated

import typer

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
    from dragoman.training.clock import Clock

    clock = Clock.of_command()
    from dragoman.training.api import resume as resume_run

    outcome = resume_run(run, overrides or [], quiet, clock).outcome
    if outcome is not None and outcome.exit_status:
        raise typer.Exit(outcome.exit_status)
