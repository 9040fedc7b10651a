"""Sentences from the command line, a file or standard input, in pieces that fit into memory."""

import contextlib
import itertools
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from dragoman.errors import UserError

T = TypeVar("T")
CHUNK = 4096
"""Sentences that are sorted by length and translated together."""


def input_lines(
    texts: list[str] | None,
    file: Path | None,
    wanted: str = "Type a sentence and press Enter.",
    blank: bool = False,
) -> Iterator[str]:
    """The texts given as arguments, else the lines of the file, else of standard input. On a terminal there
    is a prompt; `wanted` tells what to type, and empty lines are passed on only if they are `blank`."""
    if texts and file:
        raise UserError(f"--input {file}: give either a file or texts, not both")
    if texts:
        return iter(texts)
    if file:
        from dragoman.data.formats import read_lines

        return read_lines(file)
    return _prompted_lines(wanted, blank) if sys.stdin.isatty() else _stdin_lines()


def chunks(lines: Iterable[T]) -> Iterator[list[T]]:
    """Lists of lines: one by one from a terminal, otherwise many at once."""
    size = 1 if sys.stdin.isatty() else CHUNK
    iterator = iter(lines)
    while chunk := list(itertools.islice(iterator, size)):
        yield chunk


def _prompted_lines(wanted: str, blank: bool) -> Iterator[str]:
    """Lines typed at a prompt, with line editing if Python supports it. The prompt is never part of the
    output: if the output is redirected, the prompt goes to standard error."""
    print(f"{wanted} Ctrl-D ends.", file=sys.stderr, flush=True)
    if sys.stdout.isatty():
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401 (input() edits lines with it)
        ask = partial(input, "> ")
    else:
        ask = _ask_on_stderr
    with contextlib.suppress(EOFError):
        while True:
            try:
                line = ask()
            except UnicodeDecodeError:
                print("this is not valid UTF-8; try again", file=sys.stderr)
                continue
            if blank or line.strip():
                yield line
    print(file=sys.stderr)


def _ask_on_stderr() -> str:
    print("> ", end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.removesuffix("\n")


def _stdin_lines() -> Iterator[str]:
    """Only `\\n` ends a line; a trailing `\\r` and a leading BOM are dropped, as in files."""
    for number, raw in enumerate(sys.stdin.buffer, 1):
        where = f"standard input:{number}"
        if b"\0" in raw:
            raise UserError(f"{where}: NUL at byte {raw.index(0)} of the line; expected UTF-8 text")
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            found = f"0x{raw[error.start]:02X} at byte {error.start} of the line"
            raise UserError(f"{where}: not valid UTF-8 ({found})") from None
        yield line.removeprefix("\ufeff" if number == 1 else "").removesuffix("\n").removesuffix("\r")
