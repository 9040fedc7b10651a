"""`dragoman tokenize`: the pieces and ids that a run reads, and the merges that made them, one by one."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.tokenizers import TokenizerSide, tokenizer_file
from dragoman.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from dragoman.text.tokenizer import Tokenizer

_LONGEST_TO_WATCH = 2000


def tokenize(
    run: Annotated[Path, typer.Argument(help="Run directory, or the JSON file of a tokenizer.")],
    texts: Annotated[list[str] | None, typer.Argument(help="Sentences; standard input by default.")] = None,
    steps: Annotated[bool, typer.Option("--steps", help="Show the merges one by one.")] = False,
    json_lines: Annotated[bool, typer.Option("--json", help="JSON lines.")] = False,
    side: Annotated[
        TokenizerSide, typer.Option(help="Vocabulary to use, if source and target have one each.")
    ] = TokenizerSide.src,
) -> None:
    """Show how text is split into pieces and ids."""
    from dragoman.cli.output import open_output
    from dragoman.cli.texts import input_lines
    from dragoman.text.tokenizer import Tokenizer

    lines = input_lines(texts, None)
    tokenizer = Tokenizer.load(tokenizer_file(run, side))
    if sys.stdout.isatty() and not json_lines:
        from rich.console import Console

        console = Console()
        for text in lines:
            draw(console, tokenizer, text, steps)
        return
    with open_output(None) as write:
        for text in lines:
            if json_lines:
                write(tokens_as_json(tokenizer, text, steps))
            else:
                write_plain(write, tokenizer, text, steps)


def tokens_as_json(tokenizer: "Tokenizer", text: str, steps: bool) -> str:
    import json

    ids = tokenizer.encode(text)
    content: dict[str, object] = {"text": text, "pieces": tokenizer.pieces(ids), "ids": ids}
    if steps:
        content["steps"] = watched(tokenizer, text)
    return json.dumps(content, ensure_ascii=False)


def write_plain(write: Callable[[str], None], tokenizer: "Tokenizer", text: str, steps: bool) -> None:
    """One line per sentence: pieces, tab, ids. With `steps`, preceding lines show number, merge and
    pieces."""
    ids = tokenizer.encode(text)
    if steps:
        history = watched(tokenizer, text)
        for number, pieces in enumerate(history):
            merge = " + ".join(map(visible, merged(history, number)))
            write(f"{number}\t{merge}\t{' '.join(map(visible, pieces))}")
    write(f"{' '.join(map(visible, tokenizer.pieces(ids)))}\t{' '.join(map(str, ids))}")


def draw(console: "Console", tokenizer: "Tokenizer", text: str, steps: bool) -> None:
    """Tables for a person at a terminal: the merges if wanted, then the pieces with their ids."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    ids = tokenizer.encode(text)
    pieces = tokenizer.pieces(ids)
    if steps:
        history = watched(tokenizer, text)
        table = Table(box=box.SIMPLE_HEAD, title="merges", title_justify="left")
        table.add_column("step", justify="right", style="dim")
        table.add_column("merge", no_wrap=True)
        table.add_column("pieces", overflow="fold")
        for number, after in enumerate(history):
            pair = merged(history, number)
            rule = " + ".join(map(visible, pair)) or "start"
            table.add_row(
                str(number), Text(rule, style="dim" * (not pair)), highlighted(after, "".join(pair))
            )
        console.print(table)
    table = Table(box=box.SIMPLE_HEAD, title=f"{len(ids)} pieces", title_justify="left")
    table.add_column("piece", no_wrap=True)
    table.add_column("id", justify="right")
    for piece, number in zip(pieces, ids, strict=True):
        table.add_row(Text(visible(piece)), str(number))
    console.print(table)


def watched(tokenizer: "Tokenizer", text: str) -> list[list[str]]:
    if len(text) > _LONGEST_TO_WATCH:
        raise UserError(
            f"--steps: the text has {len(text)} characters, and at most {_LONGEST_TO_WATCH} can be shown "
            "merge by merge; give a shorter one"
        )
    return tokenizer.merge_steps(text)


def merged(history: list[list[str]], number: int) -> tuple[str, ...]:
    """The pair whose merge led to step `number`: the first place where two steps differ shows it."""
    if number == 0:
        return ()
    before, after = history[number - 1], history[number]
    place = next(i for i, (old, new) in enumerate(zip(before, after, strict=False)) if old != new)
    return before[place], before[place + 1]


def visible(piece: str) -> str:
    """Escape control characters and unusual spaces, so that a text stays on one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in piece)


def highlighted(pieces: list[str], new: str) -> "Text":
    """Pieces with spaces between them; those that the last merge made stand out."""
    from rich.text import Text

    line = Text(" ")
    return line.join(Text(visible(piece), style="bold green" * (piece == new)) for piece in pieces)
