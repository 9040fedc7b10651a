"""Test sentences that training has seen."""

from typing import TYPE_CHECKING

import typer

from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.runs.directory import Run


def warn_of_overlap(run: "Run", sources: list[str], references: list[str]) -> None:
    """Sentences that were seen in training make a test too easy."""
    from dragoman.data.corpus import overlap

    if not (run.directory / "data").is_dir():
        typer.echo("  the training data are not with the run, so overlap with them is not checked", err=True)
        return
    data = run.directory / "data"
    try:
        checked = {"source": overlap(data, sources, "src"), "target": overlap(data, references, "tgt")}
    except UserError as error:
        typer.echo(f"  overlap with the training data is not checked: {error}", err=True)
        return
    for label, flags in checked.items():
        seen, count = sum(flags), len(flags)
        if seen:
            share = 100 * seen / count
            typer.echo(
                f"  warning: {seen} of {count} {label} sentences ({share:.1f}%) are in the training data "
                "(case and punctuation aside)",
                err=True,
            )
