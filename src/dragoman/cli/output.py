"""Where results go: standard output, or a file that appears as a whole or not at all."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dragoman.errors import UserError


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


@contextmanager
def _whole_file(path: Path) -> Iterator[BinaryIO]:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            yield file
        temporary.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from None
    finally:
        temporary.unlink(missing_ok=True)
