"""`dragoman average`: the mean of several checkpoints as a further one."""

from typing import Annotated

import typer

from dragoman.cli.options import RunDirectory
from dragoman.errors import UserError


def average(
    run: RunDirectory,
    last: Annotated[int | None, typer.Option(metavar="N", help="Average the newest N checkpoints.")] = None,
    best: Annotated[
        int | None, typer.Option(metavar="N", help="Average the N best on the validation set.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the new checkpoint.  [default: average-last-N]")
    ] = None,
    device: Annotated[str, typer.Option(help="Device for validation: auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Average the weights of several checkpoints into a new one.

    It becomes the best checkpoint of the run if it validates better.

    A run keeps train.keep checkpoints; set this to N or more when you train. To translate with a
    certain checkpoint, use --checkpoint NAME.
    """
    if (last is None) == (best is None):
        raise UserError("average: give either --last N or --best N")
    chosen = name or (f"average-last-{last}" if last is not None else f"average-best-{best}")
    if not chosen.replace("-", "").replace("_", "").isalnum() or chosen.isdecimal():
        raise UserError(
            f"--name: expected letters, digits, - and _, and not a number alone, found '{chosen}'"
        )
    from dragoman.runs.directory import Run
    from dragoman.training.average import average_run, best_checkpoints, last_checkpoints
    from dragoman.training.display import validation_line

    opened = Run.open(run)
    names = last_checkpoints(opened, last) if last is not None else best_checkpoints(opened, best or 0)
    found = average_run(opened, names, chosen, device)
    typer.echo(f"mean of {', '.join(found.sources)}, written as checkpoint {chosen}")
    if found.metrics:
        typer.echo(validation_line(found.update, found.metrics, found.better))
    else:
        typer.echo("the validation set is not here, so it was not compared with the others")
    if found.better:
        before = f", before {found.before.value:.4g} by {found.before.name}" if found.before else ""
        typer.echo(f"it is the best checkpoint of the run now{before}")
    else:
        old = found.before
        stays = "" if old is None else f" {old.name} ({old.metric} {old.value:.4g})"
        typer.echo(f"the best checkpoint of the run stays{stays}; use this one with  --checkpoint {chosen}")
