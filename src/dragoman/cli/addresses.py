"""Arguments that are addresses, such as s3://bucket/run: every command sees local copies of them.

an input    is fetched; a directory that the command changes is written back
an output   is made here and written there when it is whole; until then all of it is at ADDRESS.unfinished, so
            that the same command goes on from there on another machine
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from dragoman.cluster.storage import StoragePlace, followed, is_address

_OUTPUTS = ("-o", "--out", "--output")
_UNFINISHED = ".unfinished"
FileStates = dict[str, tuple[int, int]]


class Staged:
    """The addresses among the arguments of a command, and their local copies."""

    def __init__(self) -> None:
        self._inputs: dict[Path, tuple[StoragePlace, FileStates]] = {}
        self._outputs: dict[Path, StoragePlace] = {}
        self._files: list[Path] = []

    def localised(self, arguments: Sequence[str]) -> list[str]:
        found: list[str] = []
        for argument in arguments:
            name, equals, value = argument.partition("=")
            option, given = (name, value) if equals and not is_address(argument) else ("", argument)
            if not is_address(given):
                found.append(argument)
                continue
            spelt = option or (found[-1] if found else "")
            local = str(self._output(given) if spelt in _OUTPUTS else self._input(given))
            found.append(f"{option}={local}" if option else local)
        return found

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Inside, the command runs; afterwards what it made is at the addresses."""
        with followed(self._push, lambda text: typer.echo(text, err=True)):
            try:
                yield
            finally:
                for path in self._files:
                    path.unlink(missing_ok=True)
                self._push()
        for local, place in self._outputs.items():
            for path in sorted(local.parent.iterdir()):
                if path.is_file():
                    place.beside(path.name).put(path)
                    path.unlink()
            place.beside(f"{local.name}{_UNFINISHED}").remove()

    def _input(self, address: str) -> Path:
        place, local = StoragePlace(address), _local(address)
        if place.is_directory():
            place.pull(local)
            self._inputs[local] = place, _state(local)
        else:
            place.get(local)
            self._files.append(local)
        return local

    def _output(self, address: str) -> Path:
        place, local = StoragePlace(address), _local(address)
        begun = place.beside(f"{local.name}{_UNFINISHED}")
        if begun.is_directory() and not any(local.parent.glob(f"{local.name}*")):
            begun.pull(local.parent)
        local.parent.mkdir(parents=True, exist_ok=True)
        self._outputs[local] = place
        return local

    def _push(self) -> None:
        """What has changed so far. A file is not yet whole, so it lies apart."""
        for local, (place, before) in self._inputs.items():
            if (now := _state(local)) != before:
                place.push(local)
                self._inputs[local] = place, now
        for local, place in self._outputs.items():
            paths = sorted(local.parent.iterdir())
            for path in paths:
                if path.is_dir() and not path.name.startswith("."):
                    place.beside(path.name).push(path)
            if any(path.is_file() and not path.name.startswith(".") for path in paths):
                place.beside(f"{local.name}{_UNFINISHED}").push(local.parent)


def _local(address: str) -> Path:
    """Where the copy of an address is kept: always at the same place, so that it need not travel twice."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragoman" / "addresses"
    whole = address.rstrip("/")
    return root / hashlib.sha256(whole.encode()).hexdigest()[:32] / whole.rpartition("/")[2]


def _state(directory: Path) -> FileStates:
    found = {}
    for parent, _, names in os.walk(directory, followlinks=True):
        for name in names:
            status = Path(parent, name).stat()
            found[os.path.join(parent, name)] = status.st_size, status.st_mtime_ns  # noqa: PTH118
    return found
