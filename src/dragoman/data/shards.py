"""Shards of a prepared corpus in separate directories, for example on other disks.

    cache/FINGERPRINT/train-00000.src.ids ──▶ /disk1/shards-FINGERPRINT…/train-00000.src.ids
                      train-00001.src.ids ──▶ /disk2/shards-FINGERPRINT…/train-00001.src.ids

The name of the directory encodes the contents and the sharding, so two processes that run at once make the
same shards. Runs also point to the shards: an existing directory is kept if its contents are equal, and
replaced if it is damaged, so that the runs have whole shards again.
"""

import filecmp
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from dragoman.data.config import ShardConfig
from dragoman.files import discard, new_directory


class ShardPlaces:
    """The directories that the shards of one preparation are written to, in turn."""

    def __init__(self, works: dict[Path, Path], turn: Sequence[Path]) -> None:
        self._works = works
        self.directories = [works[target] for target in turn]

    def point_from(self, result: Path) -> None:
        """Create symlinks to the final paths of the shards."""
        for target, work in self._works.items():
            for path in sorted(work.iterdir()):
                (result / path.name).symlink_to(target / path.name)


def shard_directories(config: ShardConfig) -> list[Path]:
    return [Path(directory).resolve() for directory in config.directories]


@contextmanager
def shard_places(config: ShardConfig, fingerprint: str) -> Iterator[ShardPlaces]:
    """Directories for new shards. They get their final names when the `with` block ends without an error."""
    directories = shard_directories(config)
    layout = json.dumps([fingerprint, config.pairs, [str(directory) for directory in directories]])
    name = f"shards-{hashlib.sha256(layout.encode()).hexdigest()[:32]}"
    turn = [directory / name for directory in directories]
    with ExitStack() as stack:
        works = {target: stack.enter_context(_new_or_same(target)) for target in dict.fromkeys(turn)}
        yield ShardPlaces(works, turn)


@contextmanager
def _new_or_same(target: Path) -> Iterator[Path]:
    with new_directory(target, keep_existing=True) as work:
        yield work
        if target.is_dir() and not _same(target, work):
            with suppress(FileNotFoundError):  # another process may have been faster
                discard(target)


def _same(found: Path, made: Path) -> bool:
    """Whether the files of two directories have the same names and contents."""
    names = sorted(path.name for path in made.iterdir())
    if sorted(path.name for path in found.iterdir()) != names:
        return False
    return filecmp.cmpfiles(found, made, names, shallow=False)[0] == names
