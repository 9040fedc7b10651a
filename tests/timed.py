"""Runs whose time is made up: so many seconds an update, a validation and a start."""

from collections.abc import Callable
from typing import Any

import pytest

from dragoman.learning import validation
from dragoman.runs.directory import Run
from dragoman.training import loop
from dragoman.training.budget import Clock
from dragoman.training.display import NoDisplay
from dragoman.training.session import train_run


class FakeClock(Clock):
    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def seconds(self) -> float:
        return self.now


class Killed(Exception):
    pass


class Timed:
    """Trains runs on a clock of its own. `die_at` ends it as a kill would."""

    def __init__(
        self, patch: pytest.MonkeyPatch, update: float = 1.0, validation_seconds: float = 0.0
    ) -> None:
        self.clock = FakeClock()
        self.updates = 0
        self.die_at: int | None = None
        self.validations: list[int] = []
        self.metrics: Callable[[int], dict[str, float]] = lambda _: {}
        """What the validation with this number finds, from 0 on, beside what is true."""
        learn, run = loop.learn, validation.DecoderValidator.run

        def timed_learn(training: Any, data: Any) -> Any:
            if training.progress.update == self.die_at:
                raise Killed
            learnt = learn(training, data)
            self.clock.now += update
            self.updates = training.progress.update
            return learnt

        def timed_run(validator: Any, *args: Any) -> validation.Validation:
            found = run(validator, *args)
            self.clock.now += validation_seconds
            metrics = found.metrics | self.metrics(len(self.validations))
            self.validations.append(self.updates)
            return validation.Validation(metrics, found.samples)

        patch.setattr(loop, "learn", timed_learn)
        patch.setattr(validation.DecoderValidator, "run", timed_run)

    def train(self, run: Run, start: float = 0.0) -> None:
        """A session that begins to train `start` seconds after the command."""
        self.clock.now = start
        train_run(run, NoDisplay(), clock=self.clock)
