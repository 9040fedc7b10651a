"""Fitting a model that counts: one epoch of the same data, then one validation and one checkpoint.

The counts do not depend on the order of the pairs, and nothing is saved before they are complete: a run that
is killed starts again, and ends with the same bytes.
"""

import dataclasses
from collections.abc import Iterator

import torch

from dragoman import checkpoint
from dragoman.data.batch import PairBatch
from dragoman.data.corpus import Prepared
from dragoman.learning import learning_of
from dragoman.runs.directory import Outcome, Run
from dragoman.training.batches import Batches
from dragoman.training.budget import StopRequest
from dragoman.training.checkpoints import CheckpointPolicy
from dragoman.training.log import Log
from dragoman.training.progress import Best
from dragoman.training.state import Fitting

_SCORES_AT_ONCE = 1 << 24
"""Maximum number of scores of a validation batch: counting models score the whole vocabulary."""


def count_run(run: Run, prepared: Prepared, device: torch.device, log: Log, stop: StopRequest) -> Outcome:
    """Count the training data, unless a checkpoint shows that this has been done."""
    fitting = Fitting(run.config, prepared, device)
    policy = CheckpointPolicy(run, fitting, log)
    policy.restore()
    progress, model = fitting.progress, fitting.model
    if not progress.update:
        epoch = _Epoch(run, prepared, device, log, stop)
        try:
            model.count(epoch)
        except _Stopped:
            return Outcome(f"stopped by {stop.name}", 0, stop.exit_status)
        progress.update = progress.epoch = 1
        progress.tokens = epoch.tokens
        _validate(run, prepared, fitting, log)
        policy.save(last=True)
    return Outcome("every pair has been counted", progress.update)


def _validate(run: Run, prepared: Prepared, fitting: Fitting, log: Log) -> None:
    config, progress, model = run.config.train, fitting.progress, fitting.model
    tokens = max(1, min(config.batch_tokens, _SCORES_AT_ONCE // model.vocab.tgt_size))
    train = dataclasses.replace(config, batch_tokens=tokens)
    settings = dataclasses.replace(run.config, train=train)
    validator = learning_of(settings).validator(settings, prepared, fitting.device)
    if not len(validator):
        return
    log.display.stage("validating", 0, None)
    began = log.clock.seconds()
    found = validator.run(model, fitting.autocast())
    value, loss = found.metrics[config.metric], found.metrics["loss"]
    progress.best = Best(checkpoint.checkpoint_name(progress.update), config.metric, value, loss)
    log.valid(progress.update, found.metrics, True, found.samples, log.clock.seconds() - began)


class _Stopped(Exception):
    """A signal arrived while the data were being counted."""


class _Epoch:
    """The batches of the first epoch, as a training by gradients would see them; any number of times.

    So corpus weights and BPE-dropout have the same meaning as there.
    """

    def __init__(
        self, run: Run, prepared: Prepared, device: torch.device, log: Log, stop: StopRequest
    ) -> None:
        once = dataclasses.replace(run.config.train, max_epochs=1, accumulate=1)
        self._batches = Batches(dataclasses.replace(run.config, train=once), prepared, device)
        self._log, self._stop = log, stop
        self._passes = 0
        self.tokens = 0
        """Target tokens counted in this pass."""

    def __iter__(self) -> Iterator[PairBatch]:
        self._passes, self.tokens = self._passes + 1, 0
        total, done = self._batches.sampler.draws, 0
        for update in self._batches.updates(0, 0):
            for micro in update.micro_batches:
                if self._stop.signal is not None:
                    raise _Stopped
                assert isinstance(micro.batch, PairBatch), "what is counted are pairs"
                yield micro.batch
                done += len(micro.pairs)
                self.tokens += micro.batch.num_tokens
                self._log.display.stage(f"counting pairs, table {self._passes}", done, total)
