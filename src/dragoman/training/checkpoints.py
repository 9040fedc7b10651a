"""Checkpoint policy: which checkpoints a run writes, keeps, resumes from, and averages at the end."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from dragoman import checkpoint
from dragoman.checkpoint.files import disk_full
from dragoman.checkpoint.model import find_checkpoint, write_best
from dragoman.config import to_dict
from dragoman.errors import UserError
from dragoman.learning.base import Validator
from dragoman.runs.directory import Run
from dragoman.shapes import Tensor
from dragoman.training.average import save_average
from dragoman.training.log import Log
from dragoman.training.progress import Best
from dragoman.training.state import Fitting

AVERAGED = "averaged"


class CheckpointPolicy:
    def __init__(self, run: Run, training: Fitting, log: Log) -> None:
        self.run, self.training, self.log = run, training, log
        self.root, self.config, self.crew = run.checkpoints, run.config.train, training.crew

    def restore(self) -> None:
        """Resume from the newest checkpoint that verifies; without one, start from the beginning."""
        name = self.crew.decide(self._newest)
        start = self.run.config.start
        if name is None and start is not None:
            self.training.begin_with(find_checkpoint(Path(start)))
            self.log.say(f"beginning with the weights of {start}")
        elif name is None and (file := self.run.config.transfer.vectors) is not None:
            self.log.say(self.training.begin_with_vectors(Path(file)))
        elif name is not None:
            changed = self.training.restore(checkpoint.load_checkpoint(self.root / name))
            if changed:
                self.log.warn(f"training continues, but not bit for bit as before: {', '.join(changed)}")
        self.log.cut_metrics(self.training.progress.metrics_bytes)
        if not self.crew.decide(self._restore_best):
            self.training.progress.best, self.training.progress.stale = None, 0
        self.crew.decide(lambda: self._prune(last=False))  # a kill may have prevented this earlier

    def _newest(self) -> str | None:
        if not checkpoint.names(self.root):
            return None
        found = checkpoint.newest(self.root, self.log.warn)
        for name in checkpoint.names(self.root):
            if int(name) > int(found.name):
                checkpoint.set_aside(self.root / name)
        return found.name

    def _restore_best(self) -> bool:
        """best.json follows the checkpoint: a kill may have come between the two. False where the best
        checkpoint is lost."""
        best = self.training.progress.best
        if best is None:
            self.run.forget_best()
            return True
        try:
            checkpoint.verify_checkpoint(self.root / best.name)
        except checkpoint.Damaged as error:
            self.log.warn(f"{error}; the best checkpoint is lost and will be chosen again")
            self.run.forget_best()
            return False
        write_best(self.run.directory, to_dict(best))
        return True

    def check_space(self) -> None:
        """Check for disk space before training, not hours later. A sharded model is not gathered for this."""
        if not self.training.sharded:
            self.crew.decide(self._check_space)

    def _check_space(self) -> None:
        needed = checkpoint.space_needed(self.training.tensors())
        kept = max(2, self.config.keep, self.config.average or 0) + 2  # the best, and the one being written
        free = shutil.disk_usage(self.run.directory).free
        if free < needed:
            raise disk_full(self.root, needed)
        if free + checkpoint.space_used(self.root) < kept * needed:
            self.log.warn(
                f"{self.root}: up to {kept} checkpoints of {needed:,} bytes each will be kept, and {free:,} "
                "bytes are free: make room, or lower train.keep"
            )

    def save(self, last: bool) -> float:
        """Write a checkpoint and remove those that are no longer needed. Returns the seconds it took."""
        began = self.log.clock.seconds()
        tensors = self.training.tensors()
        self.crew.decide(lambda: self._save(tensors, last))
        seconds = self.log.clock.seconds() - began
        self.log.saved(self.training.progress.update, seconds)
        return seconds

    def _save(self, tensors: Mapping[str, Mapping[str, Tensor]], last: bool) -> None:
        progress = self.training.progress
        progress.metrics_bytes = self.log.sync_metrics()
        name = checkpoint.checkpoint_name(progress.update)
        checkpoint.save(self.root, name, tensors, self.training.state())
        if progress.best is not None and progress.best.name == name:
            write_best(self.run.directory, to_dict(progress.best))
        self._prune(last)

    def _prune(self, last: bool) -> None:
        """Remove the checkpoints that are no longer needed."""
        bests = self._bests()
        if bests is not None:
            checkpoint.prune(self.root, self.config.keep, {*bests, *self._regular(last)})

    def _bests(self) -> list[str] | None:
        """The best checkpoint, and those that were it when the kept ones were written: if the newest is ever
        found damaged, the one before it must still find its best. None where one of them cannot be read just
        now: then nobody knows what may be removed."""
        found = []
        for name in checkpoint.names(self.root)[-max(2, self.config.keep) :]:
            try:
                found.append(str(checkpoint.read_state(self.root / name)["progress"]["best"]["name"]))
            except (checkpoint.Damaged, KeyError, TypeError):
                continue  # or there was no validation before it
            except UserError:
                return None
        return found

    def _regular(self, last: bool) -> list[str]:
        """The checkpoints that are averaged at the end: the newest regular ones. Checkpoints made by a signal
        are excluded, so that stopping changes nothing."""
        final = self.training.progress.update if last else 0
        every = 1 if self.config.validations else self.config.save_every  # all of them were due
        due = [n for n in checkpoint.names(self.root) if int(n) % every == 0 or int(n) == final]
        return due[-self.config.average :] if self.config.average else []

    def average(self, validator: Validator) -> None:
        """Try the mean of the last checkpoints (Vaswani et al. 2017, section 6.1); keep it if better."""
        self.crew.decide(lambda: self._average(validator))

    def _average(self, validator: Validator) -> None:
        names = self._regular(last=True)
        if len(names) < 2 or not len(validator):
            return
        training, progress, metric = self.training, self.training.progress, self.config.metric
        began = self.log.clock.seconds()
        part = "ema" if training.average else "model"
        mean = checkpoint.average_checkpoints([self.root / name for name in names], part)
        with training.usable_model(mean) as model:
            found = validator.run(model, training.autocast())
        better = progress.is_better(metric, found.metrics)
        self.log.say(f"mean of the last {len(names)} checkpoints:")
        self.log.valid(
            progress.update, found.metrics, better, [], self.log.clock.seconds() - began, kind=AVERAGED
        )
        if better:
            best = Best(AVERAGED, metric, found.metrics[metric], found.metrics["loss"])
            save_average(self.run, AVERAGED, mean, training.state(), best)
