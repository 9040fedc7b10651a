"""`dragoman translate` of documents, and of sentences whose translations are printed while they are found."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dragoman.errors import UserError
from dragoman.text.normalize import one_line

if TYPE_CHECKING:
    from dragoman.cli.translate import TranslateWork
    from dragoman.cli.translators import Opened
    from dragoman.decode.search.config import SearchConfig


def translate_documents(
    work: "TranslateWork",
    opened: "Opened",
    documents: Sequence[tuple[Path, Path]],
    refused: Mapping[str, Any],
) -> None:
    """Each document into its file."""
    from dragoman.cli.confidence import Trust
    from dragoman.cli.documents import translate_files
    from dragoman.text.spans import DEFAULT_KINDS

    trust = None if work.calibration is None else Trust(work.calibration, work.below)
    ask = work.best_of(opened)

    def best(texts: list[str]) -> list[str]:
        rows = [best for best, *_ in ask(texts, protect=work.kinds or DEFAULT_KINDS)]
        for text, one in zip(texts, rows, strict=True):
            if trust is not None:
                trust.note(text, one)
        return [one.text for one in rows]

    translate_files(documents, opened.languages, best, [name for name, given in refused.items() if given])
    if trust is not None:
        trust.tell()


def stream_lines(
    work: "TranslateWork", opened: "Opened", lines: Iterable[str], refused: Mapping[str, Any]
) -> None:
    """A text with spans to protect is printed when all of it is there: only then is their place known."""
    import sys
    from itertools import chain

    from dragoman.text.spans import find

    if names := [name for name, given in refused.items() if given]:
        raise UserError(f"--stream: goes to standard output as plain text; leave out {', '.join(names)}")
    translator, out = opened.translator, sys.stdout.buffer
    for line in lines:
        if find(line, work.kinds):
            parts = iter(translator.translate([line], search=work.search, protect=work.kinds))
        else:
            parts = (part.text for part in translator.stream(line, search=work.search))
        for text in chain(map(one_line, parts), "\n"):
            out.write(text.encode("utf-8"))
            out.flush()


def warn_of_unproven(unproven: int, number: int, search: "SearchConfig") -> None:
    from dragoman.decode.search.config import ExhaustiveSearch

    assert isinstance(search, ExhaustiveSearch), "no other search proves anything"
    typer.echo(
        f"warning: {unproven} of {number} translations may not be the optimum: it was not proven within "
        f"{search.max_nodes:,} prefixes (search.max_nodes)",
        err=True,
    )
