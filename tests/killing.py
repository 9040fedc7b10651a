"""Processes that die, and whether what goes on from there is what would have been without it."""

from collections.abc import Sequence

import pytest

from dragoman.runs.directory import Run
from dragoman.training import loop
from dragoman.training.batches import UpdateBatch
from dragoman.training.display import NoDisplay
from dragoman.training.session import train_run
from dragoman.training.state import Training


class Killed(BaseException):
    """As SIGKILL does: nothing catches it, nothing is saved, nothing is said."""


def train_until_killed(run: Run, update: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train until so many updates are done, and die in the next."""
    learn = loop.learn

    def learn_until_killed(training: Training, data: UpdateBatch) -> loop.Learnt:
        if training.progress.update == update:
            raise Killed
        return learn(training, data)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(loop, "learn", learn_until_killed)
        train_run(run, NoDisplay())


def assert_same_checkpoint(
    a: Run,
    b: Run,
    name: str,
    files: Sequence[str] = ("model.safetensors", "optim.safetensors", "state.json"),
) -> None:
    """Bit for bit."""
    for file in files:
        left, right = (run.checkpoints / name / file for run in (a, b))
        assert left.read_bytes() == right.read_bytes(), file
