"""Where results go: standard output, or files that appear as a whole or not at all."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import typer

from dragoman.errors import UserError
from dragoman.files import explained, replacing


class WrittenLines(NamedTuple):
    """Lines to write for some lines of the input."""

    out: list[str]
    lines: int
    unproven: int = 0
    """Translations of an exhaustive search that may not be the optimum."""
    flagged: int = 0
    """Translations whose confidence is too low."""
    failed: int = 0
    """Lines that were left out."""


def write_lines(parts: Iterable[WrittenLines], path: Path | None) -> WrittenLines:
    """Write the lines of all parts; return their counts."""
    counts = [0] * 4
    with open_output(path) as write:
        for part in parts:
            for line in part.out:
                write(line)
            counts = [a + b for a, b in zip(counts, part[1:], strict=True)]
    return WrittenLines([], *counts)


ENDINGS = (".png", ".svg", ".tsv")
"""Of a picture and its numbers."""


@contextmanager
def open_output(path: Path | None) -> Iterator[Callable[[str], None]]:
    """A function that writes one line as UTF-8."""
    if path is None:
        out = sys.stdout.buffer

        def to_stdout(line: str) -> None:
            out.write(line.encode("utf-8") + b"\n")
            out.flush()

        yield to_stdout
        return
    with _whole_file(path) as file:

        def to_file(line: str) -> None:
            file.write(line.encode("utf-8") + b"\n")

        yield to_file


def write_file(path: Path, data: bytes) -> None:
    with _whole_file(path) as file:
        file.write(data)


def output_stem(out: Path) -> Path:
    """The path without an ending of ours, in a directory that can be written to."""
    stem = out.with_suffix("") if out.suffix in ENDINGS else out
    if not stem.name or stem.name == ".." or stem.is_dir():
        raise UserError(
            f"--out {out}: this is a directory; give a name for the files, as in {out / 'lengths'}"
        )
    if not stem.parent.is_dir():
        raise UserError(f"--out {out}: there is no directory {stem.parent}")
    if not os.access(stem.parent, os.W_OK):
        raise UserError(f"--out {out}: the directory {stem.parent} cannot be written to")
    return stem


def write_beside(stem: Path, contents: dict[str, bytes]) -> None:
    """Files of one name, by their endings, and a word about each."""
    for ending, content in contents.items():
        path = stem.with_name(stem.name + ending)
        write_file(path, content)
        typer.echo(f"  written to {path}" if ending == ENDINGS[0] else f"             {path}")


@contextmanager
def _whole_file(path: Path) -> Iterator[BinaryIO]:
    """A device or a named pipe, such as /dev/stdout, is written to as it is; a file is replaced."""
    with explained(path):
        is_special = path.exists() and not path.is_file() and not path.is_dir()
        with path.open("wb") if is_special else replacing(path) as file:
            yield file
