"""What hostile files have in common: what is made, and the command that reads it."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Attack:
    kind: str
    what: str
    make: Callable[[Path], None]
    """In a copy of everything that was made."""
    arguments: tuple[str, ...]


def published(change: Callable[[Path], None]) -> Callable[[Path], None]:
    """Something done to a Hugging Face directory that has no manifest of ours."""

    def make(directory: Path) -> None:
        target = directory / "hostile"
        shutil.copytree(directory / "hf", target)
        for path in target.rglob("*manifest*.json"):
            path.unlink()
        change(target)

    return make


def written(name: str, data: bytes) -> Callable[[Path], None]:
    def write(directory: Path) -> None:
        (directory / name).write_bytes(data)

    return write
