"""Checkpoints say in their state which one was the best, so a lost best.json is noticed."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dragoman import checkpoint
from dragoman.errors import UserError


def told_best(state: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Name, metric and value of what was the best when a checkpoint was written."""
    progress = state.get("progress")
    own = progress.get("best") if isinstance(progress, Mapping) else None
    return own if isinstance(own, Mapping) else None


def refuse_lost_best(file: Path, last: checkpoint.Checkpoint) -> None:
    """Where `file` is missing the last checkpoint stands for the best, unless another one was better."""
    root = last.path.parent
    told = {(told_best(last.state) or {}).get("name")}
    for mean in (path for path in root.iterdir() if not path.name.isdecimal() and path.is_dir()):
        with suppress(UserError):
            if (told_best(checkpoint.load(mean).state) or {}).get("name") == mean.name:
                told.add(mean.name)
    for name in told - {None, last.name}:
        if _is_whole(root / Path(str(name)).name):
            raise UserError(
                f"{file}: missing, though {name} was the best checkpoint: resume the run, which writes it "
                "again, or choose a checkpoint by its name"
            )


def _is_whole(path: Path) -> bool:
    try:
        checkpoint.verify(path)
    except UserError:
        return False
    return True
