"""How long a run will take: a few real updates and a part of a validation, timed and thrown away.

The run is not affected: the weights are a copy, and the run seeds its random numbers again. Only the steady
state is timed: on a GPU each update runs twice before, so that kernels are loaded and CUDA graphs captured.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from dragoman import checkpoint
from dragoman.learning import learning_of
from dragoman.runs.config import RunConfig, TrainConfig
from dragoman.runs.directory import Corpus
from dragoman.training.batches import Batches, UpdateBatch
from dragoman.training.budget import TUNING, Clock
from dragoman.training.state import Training
from dragoman.training.update import Late, Learnt, learn

_UPDATES = {"cpu": 12, "cuda": 16}
_ROUNDS_BEFORE = {"cpu": 0, "cuda": 2}
_FEW_UPDATES = 6
"""Enough to notice a machine that is much slower than assumed."""
_WARM_UP = 1
"""Warm-up updates on a CPU, which pay for allocations."""
_TIME_LIMIT = 3.0
"""Seconds to time updates; at least two are timed."""
_VALIDATION_COST = 1 / 3
"""Cost of a forward pass relative to forward and backward, where a validation cannot be timed in part."""
_BYTES_SAVED_A_SECOND, _SAVE_SECONDS = 2e8, 0.05


@dataclass(frozen=True)
class Costs:
    """Seconds of the repeated parts of a run."""

    update: float
    validation: float = 0.0
    save: float = 0.0

    def of(self, config: TrainConfig, first: int, last: int) -> float:
        """Total seconds from update `first` to update `last`, the end of the run."""
        validations = last // config.validate_every - first // config.validate_every
        saves = last // config.save_every - first // config.save_every
        if last % config.validate_every:
            validations += 1
        if config.average:
            validations += 1
        saves = max(saves, validations)
        seconds = (last - first) * self.update + validations * self.validation + saves * self.save
        return seconds * (1 + TUNING) if config.tune_search else seconds


@dataclass(frozen=True)
class Estimate:
    parameters: int
    tokens_per_second: float | None
    """Target tokens per second; None if no update was timed."""
    updates: int | None
    """Number of updates of the whole run. None if unknown."""
    seconds: float | None
    """Seconds of the whole command, without early stopping."""


def estimate(
    config: RunConfig, prepared: Corpus, device: torch.device, processes: int = 1, clock: Clock | None = None
) -> Estimate:
    """One process does it all; of several it is taken that each is as quick, and that talking is free.
    `clock` began with the command."""
    clock = clock or Clock()
    training = Training(config, prepared, device)
    parameters = sum(p.numel() for p in training.parameters)
    if config.budgeted:
        return Estimate(parameters, None, None, 60 * (config.train.max_minutes or 0.0))
    training.progress.update = 1  # before it, a falling share of the data's words is still whole
    batches = Batches(config, prepared, device, packed=training.packed)
    total = batches.count_updates()
    data = _first_updates(batches, _UPDATES.get(device.type, 12))
    rounds = [_timed(training, data, clock) for _ in range(_ROUNDS_BEFORE.get(device.type, 0))]
    timed = _timed(training, data, clock)
    if not timed.updates:
        return Estimate(parameters, None, total, None)
    update = timed.seconds / timed.updates / processes
    speed = timed.tokens / timed.seconds * processes
    whole = None
    if total is not None:
        validation = _validation_seconds(config, prepared, training, clock, speed)
        save = _SAVE_SECONDS + checkpoint.space_needed(training.tensors()) / _BYTES_SAVED_A_SECOND
        recording = max(0.0, rounds[-1].seconds - timed.seconds) if rounds else 0.0
        costs = Costs(update, validation, save)
        whole = clock.seconds() + recording + costs.of(config.train, 0, total)
    limit = config.train.max_minutes
    if limit is not None:
        whole = min(60 * limit, whole or 60 * limit)
    return Estimate(parameters, speed, total, whole)


def measured_update(config: RunConfig, prepared: Corpus, device: torch.device, clock: Clock) -> float | None:
    """Seconds per update, after kernels are loaded and the CUDA graph is captured. None if no update was
    timed."""
    training = Training(config, prepared, device)
    training.progress.update = 1  # before it, a falling share of the data's words is still whole
    batches = Batches(config, prepared, device, packed=training.packed)
    data = _first_updates(batches, _FEW_UPDATES)
    for _ in range(_ROUNDS_BEFORE.get(device.type, 0)):
        _timed(training, data, clock)
    timed = _timed(training, data, clock)
    return timed.seconds / timed.updates if timed.updates else None


@dataclass
class _Round:
    seconds: float = 0.0
    tokens: int = 0
    updates: int = 0


def _first_updates(batches: Batches, count: int) -> list[UpdateBatch]:
    updates = batches.updates(0, 0)
    try:
        return list(itertools.islice(updates, count))
    finally:
        updates.close()  # type: ignore[attr-defined]


def _timed(training: Training, data: Sequence[UpdateBatch], clock: Clock) -> _Round:
    """Time updates as the loop runs them: results are read while the next update is running."""
    found = _Round()
    skipped = 0 if training.device.type == "cuda" else min(_WARM_UP, len(data) - 1)
    for update in data[:skipped]:
        _ = learn(training, update).loss
    began = clock.seconds()
    before: Learnt | Late | None = None
    for update in data[skipped:]:
        learnt = learn(training, update)
        if before is not None:
            _ = before.loss  # synchronises with the device
        before = learnt
        found.tokens += learnt.tokens
        found.updates += 1
        if found.updates >= 2 and clock.seconds() - began > _TIME_LIMIT:
            break
    if before is not None:
        _ = before.loss
    found.seconds = max(clock.seconds() - began, 1e-9)
    return found


def _validation_seconds(
    config: RunConfig, prepared: Corpus, training: Training, clock: Clock, speed: float
) -> float:
    if not len(prepared.valid):
        return 0.0
    validator = learning_of(config).validator(config, prepared, training.device)
    with training.usable_model() as model:
        found = validator.estimated_seconds(model, training.autocast(), clock.seconds)
    return prepared.valid_targets / speed * _VALIDATION_COST if found is None else found


class SessionPace:
    """Measured seconds of updates, validations and checkpoints in this session."""

    def __init__(self, seconds: Callable[[], float], update: int) -> None:
        self._seconds = seconds
        self._began, self._update = seconds(), update
        self._lines: list[float] = []
        self.validation = self.save = 0.0

    def line(self, update: int) -> float:
        """Seconds of updates since the previous log line, pauses excluded."""
        spent = max(self._seconds() - self._began, 1e-9)
        if update > self._update:
            self._lines.append(spent / (update - self._update))
        self._began, self._update = self._seconds(), update
        return spent

    def pause(self, seconds: float) -> None:
        """Exclude these seconds (a validation or a checkpoint) from the current log line."""
        self._began += seconds

    @property
    def update(self) -> float:
        """Seconds per update by the last log line; 0 before the first."""
        return self._lines[-1] if self._lines else 0.0

    @property
    def costs(self) -> Costs | None:
        """None before the second log line: the first one includes kernel loading and graph capture."""
        if len(self._lines) < 2:
            return None
        return Costs(median(self._lines[-20:]), self.validation, self.save)
