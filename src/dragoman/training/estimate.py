"""How long a run will take: a few real updates of its model on its own data, timed and thrown away.

Nothing of it reaches the run: the weights are a copy of their own, and the run seeds its random numbers anew.
"""

import time
from dataclasses import dataclass

import torch

from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Corpus
from dragoman.training.batches import Batches
from dragoman.training.state import Training
from dragoman.training.update import learn

_WARM_UP = {"cpu": 1, "cuda": 5}
"""Updates that also pay for allocations and for loading kernels."""
_TIMED_UPDATES = {"cpu": 4, "cuda": 20}
_TIME_LIMIT = 10.0
_VALIDATION_COST = 1 / 3
"""A forward pass against a forward and a backward pass."""


@dataclass(frozen=True)
class Estimate:
    parameters: int
    tokens_per_second: float
    """Target tokens learnt from."""
    updates: int | None
    """Of the whole run, where that is known."""
    seconds: float | None
    """Of the whole run; an upper bound where it may stop early."""


def estimate(config: RunConfig, prepared: Corpus, device: torch.device, processes: int = 1) -> Estimate:
    """One process does it all; of several it is taken that each is as quick, and that talking is free."""
    training = Training(config, prepared, device)
    training.progress.update = 1  # before it, a falling share of the data's words is still whole
    batches = Batches(config, prepared, device, packed=training.packed)
    seconds = tokens = timed = 0
    for number, data in enumerate(batches.updates(0, 0)):
        began = time.perf_counter()
        learnt = learn(training, data)
        _ = learnt.loss  # asking for it waits for the device
        if number >= _WARM_UP.get(device.type, 1):
            seconds += (time.perf_counter() - began) / processes
            tokens += learnt.tokens
            timed += 1
        if timed == _TIMED_UPDATES.get(device.type, 4) or seconds > _TIME_LIMIT or data.last:
            break
    parameters = sum(p.numel() for p in training.parameters)
    if not timed:
        return Estimate(parameters, 0.0, batches.count_updates(), None)
    speed = tokens / seconds
    total = batches.count_updates()
    if total is None:
        limit = config.train.max_minutes
        return Estimate(parameters, speed, None, 60 * limit if limit else None)
    validations = total / config.train.validate_every
    whole = total * seconds / timed + validations * prepared.valid_targets / speed * _VALIDATION_COST
    if config.train.max_minutes is not None:
        whole = min(whole, 60 * config.train.max_minutes)
    return Estimate(parameters, speed, total, whole)
