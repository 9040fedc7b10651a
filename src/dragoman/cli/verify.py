"""`dragoman verify`: is every byte as it was written?"""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dragoman.training.verify import VerifyReport


def verify(
    path: Annotated[
        Path,
        typer.Argument(
            help="Run, checkpoint, prepared data, export, Hugging Face directory, package of Argos, "
            "tokenizer, or a directory of these."
        ),
    ],
    clean: Annotated[
        bool, typer.Option("--clean", help="Remove unfinished files of processes that died.")
    ] = False,
) -> None:
    """Check the files of a run, export or data directory against their hashes.

    It says what is damaged and what can be rebuilt. Exit status 0: all is intact; 1: something is not.
    """
    from dragoman.training.verify import remove_leftovers, verify_path

    found = verify_path(path)
    reports = found.everything()
    for report in reports:
        _print(report)
    if found.leftovers:
        for entry in found.leftovers:
            typer.echo(f"leftover of a process that died: {entry}{' (removed)' if clean else ''}")
        if clean:
            remove_leftovers(found.leftovers)
        else:
            typer.echo(f"they harm nothing; remove them with  dragoman verify {quote(str(path))} --clean")
    faults = sum(len(report.faults) for report in reports)
    if faults:
        typer.echo(f"{faults} fault{'s' * (faults != 1)}")
        raise typer.Exit(1)
    typer.echo("all is whole")


def _print(report: "VerifyReport") -> None:
    about = f", {report.about}" if report.about else ""
    typer.echo(f"{report.path}: {report.kind}{about}")
    if report.files:
        typer.echo(f"  checked {report.files:,} file{'s' * (report.files != 1)}, {report.size:,} bytes")
    for note in report.notes:
        typer.echo(f"  note: {note}")
    for fault in report.faults:
        typer.echo(f"  {fault.what}")
        typer.echo(f"    {fault.cure}")
