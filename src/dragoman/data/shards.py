"""Shards of a prepared corpus in other directories than the rest: on other disks.

    cache/FINGERPRINT/train-00000.src.ids ──▶ /disk1/shards-FINGERPRINT…/train-00000.src.ids
                      train-00001.src.ids ──▶ /disk2/shards-FINGERPRINT…/train-00001.src.ids

They are written beside their last place and get their name at once, when all of them are there. The name says
what they are made from and how they are cut, so two processes that are at it together make the same ones, and
what a killed one has left is taken over.
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from dragoman.data.cache import publish, unfinished_directory
from dragoman.data.config import ShardConfig


class ShardPlaces:
    """Where the shards of one preparation are written to, in turn."""

    def __init__(self, works: dict[Path, Path], turn: Sequence[Path], name: str) -> None:
        self._works, self._name = works, name
        self.directories = [works[directory] for directory in turn]

    def sizes(self) -> dict[str, int]:
        """Bytes of the files that are written."""
        return {path.name: path.stat().st_size for work in self._works.values() for path in work.iterdir()}

    def publish_into(self, result: Path) -> None:
        """Give the shards their last places, and point to them from `result`."""
        for directory, work in self._works.items():
            target, names = directory / self._name, sorted(path.name for path in work.iterdir())
            if target.is_dir() and not _like(target, work):
                discard(target)
            publish(work, target)
            for name in names:
                (result / name).symlink_to(target / name)


@contextmanager
def shard_places(config: ShardConfig, fingerprint: str) -> Iterator[ShardPlaces]:
    turn = [Path(directory).resolve() for directory in config.directories]
    layout = json.dumps([fingerprint, config.pairs, [str(directory) for directory in turn]])
    name = f"shards-{hashlib.sha256(layout.encode()).hexdigest()[:32]}"
    with ExitStack() as stack:
        works: dict[Path, Path] = {}
        for directory in dict.fromkeys(turn):
            works[directory] = stack.enter_context(unfinished_directory(directory)) / "result"
            works[directory].mkdir()
        yield ShardPlaces(works, turn, name)


def discard(directory: Path) -> None:
    """Remove a damaged directory; first its name, so that no one opens what is half gone."""
    away = Path(tempfile.mkdtemp(prefix=".damaged-", dir=directory.parent))
    with suppress(OSError):  # another process may have been faster
        directory.rename(away / directory.name)
    shutil.rmtree(away, ignore_errors=True)


def discard_prepared(directory: Path) -> None:
    """Remove a damaged prepared corpus, with the shards that it points to: they are made again in the same
    place, so that runs which point to them too have them back."""
    with suppress(OSError):
        for shards in {path.readlink().parent for path in directory.iterdir() if path.is_symlink()}:
            if shards.is_dir():
                discard(shards)
    discard(directory)


def _like(found: Path, made: Path) -> bool:
    """Whether the files of two directories have the same names and sizes."""
    sizes = [{path.name: path.stat().st_size for path in each.iterdir()} for each in (found, made)]
    return sizes[0] == sizes[1]
