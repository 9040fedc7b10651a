"""Which checkpoints a run writes, keeps, goes on from, and averages in the end."""

import json
import time

from dragoman import checkpoint
from dragoman.checkpoint.model import load_into, model_tensors, write_best
from dragoman.config import to_dict
from dragoman.errors import UserError
from dragoman.train.average import save_average
from dragoman.train.log import Log
from dragoman.train.run import Run
from dragoman.train.state import Best, Fitting
from dragoman.train.validate import Validator

AVERAGED = "averaged"


class Keeper:
    def __init__(self, run: Run, training: Fitting, log: Log) -> None:
        self.run, self.training, self.log = run, training, log
        self.root, self.config = run.checkpoints, run.config.train

    def restore(self) -> None:
        """Go on from the newest checkpoint that verifies; without any, from the beginning."""
        if checkpoint.names(self.root):
            found = checkpoint.newest(self.root, self.log.warn)
            for name in checkpoint.names(self.root):
                if int(name) > int(found.name):
                    checkpoint.set_aside(self.root / name)
            changed = self.training.restore(found)
            if changed:
                self.log.warn(f"the run goes on, but not bit for bit as before: {', '.join(changed)}")
        self.log.cut_metrics(self.training.progress.metrics_bytes)
        self._restore_best()

    def _restore_best(self) -> None:
        """best.json follows the checkpoint: a kill may have come between the two."""
        progress = self.training.progress
        if progress.best is not None:
            try:
                checkpoint.verify(self.root / progress.best.name)
            except UserError as error:
                self.log.warn(f"{error}; the best checkpoint is lost and will be chosen anew")
                progress.best, progress.stale = None, 0
        if progress.best is None:
            self.run.forget_best()
        else:
            write_best(self.run.directory, to_dict(progress.best))

    def save(self, last: bool) -> float:
        """Write a checkpoint and remove those that are no longer needed. Returns the seconds it took."""
        began = time.monotonic()
        progress = self.training.progress
        progress.metrics_bytes = self.log.sync_metrics()
        name = checkpoint.name_of(progress.update)
        checkpoint.save(self.root, name, self.training.tensors(), self.training.state())
        if progress.best is not None and progress.best.name == name:
            write_best(self.run.directory, to_dict(progress.best))
        protected = {*self._bests(), *self._regular(last)}
        checkpoint.prune(self.root, self.config.keep, protected)
        seconds = time.monotonic() - began
        self.log.saved(progress.update, seconds)
        return seconds

    def _bests(self) -> list[str]:
        """The best checkpoint, and those that were it when the kept ones were written: if the newest is ever
        found damaged, the one before it must still find its best."""
        found = []
        for name in checkpoint.names(self.root)[-max(2, self.config.keep) :]:
            try:
                state = json.loads((self.root / name / checkpoint.STATE).read_bytes())
                found.append(str(state["progress"]["best"]["name"]))
            except (OSError, ValueError, KeyError, TypeError):
                continue  # damaged, or nothing had been validated
        return found

    def _regular(self, last: bool) -> list[str]:
        """What the mean at the end is made of: the newest checkpoints that were due. One that a signal made
        is not among them, so stopping changes nothing."""
        final = self.training.progress.update if last else 0
        every = self.config.save_every
        due = [n for n in checkpoint.names(self.root) if int(n) % every == 0 or int(n) == final]
        return due[-self.config.average :] if self.config.average else []

    def average(self, validator: Validator) -> None:
        """Try the mean of the last checkpoints (Vaswani et al. 2017, section 6.1); keep it if better."""
        names = self._regular(last=True)
        if len(names) < 2 or not len(validator):
            return
        training, progress, metric = self.training, self.training.progress, self.config.metric
        began = time.monotonic()
        part = "ema" if training.average else "model"
        mean = checkpoint.average([self.root / name for name in names], part)
        own = {name: tensor.clone() for name, tensor in model_tensors(training.model).items()}
        load_into(training.model, mean, AVERAGED)
        found = validator.run(training.model, training.autocast())
        load_into(training.model, own, "weights")
        better = progress.is_better(metric, found.metrics)
        self.log.say(f"mean of the last {len(names)} checkpoints:")
        self.log.valid(progress.update, found.metrics, better, [], time.monotonic() - began, kind=AVERAGED)
        if better:
            best = Best(AVERAGED, metric, found.metrics[metric], found.metrics["loss"])
            save_average(self.run, AVERAGED, mean, training.state(), best)
