"""Translates documents in place: `dragoman translate RUN guide.xliff --out guide.de.xliff`."""

from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from dragoman.errors import UserError

_SHOWN = 20


def translate_files(
    documents: Sequence[tuple[Path, Path]],
    languages: tuple[str, str],
    translate: Callable[[list[str]], Sequence[str]],
    refused: Sequence[str],
    context: int = 0,
) -> None:
    """Translate each document to its output file. See `translate_units` for `context`."""
    if refused:
        names, path = ", ".join(refused), documents[0][0]
        raise UserError(f"{names}: cannot be used with a document ({path}); leave it out")
    for path, written in documents:
        _translate_file(path, written, languages, translate, context)


def _translate_file(
    path: Path,
    output: Path,
    languages: tuple[str, str],
    translate: Callable[[list[str]], Sequence[str]],
    context: int,
) -> None:
    from rich.console import Console
    from rich.progress import Progress

    from dragoman.cli.output import write_file
    from dragoman.data.documents import open_document
    from dragoman.data.documents.translate import translate_units

    opened = open_document(path, languages)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("sentences", total=None)
        outcome = translate_units(
            opened.units,
            translate,
            lambda done, total: bar.update(task, completed=done, total=total),
            256,
            language=languages[0],
            context=context,
        )
    write_file(output, opened.written(outcome.texts))
    for unit, reason in outcome.left[:_SHOWN]:
        typer.echo(f"{path}:{unit.line}: left as it was: {reason} ({unit.source[:60]!r})", err=True)
    if len(outcome.left) > _SHOWN:
        typer.echo(f"… and {len(outcome.left) - _SHOWN} more", err=True)
    typer.echo(
        f"{output}: {len(outcome.texts)} units translated, {len(outcome.left)} left as they were,"
        f" {outcome.kept} had a translation",
        err=True,
    )
