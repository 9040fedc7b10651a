"""The training loop, open to be read from top to bottom.

    for every update:  learn ─▶ log ─▶ validate ─▶ save ─▶ stop?

It can be killed at any moment: what an update does is a pure function of the weights, the optimizer's state,
the seed and the number of the update, and all of these are in the checkpoint.
"""

import math
import time

from dragoman import checkpoint
from dragoman.errors import UserError, is_out_of_memory
from dragoman.learning import learning_of
from dragoman.runs.directory import Corpus, Outcome, Run
from dragoman.runs.records import Sample
from dragoman.training.batches import Batches, UpdateBatch
from dragoman.training.checkpoints import Keeper
from dragoman.training.display import Status
from dragoman.training.log import Log
from dragoman.training.signals import StopRequest
from dragoman.training.state import Best, Training
from dragoman.training.update import Late, Learnt, learn

_STANDSTILL_FROM = 500
"""Updates. Before them, and before the rate is at its height, there is nothing to warn of."""
_STANDSTILL = 0.3
"""Nats below the loss of frequencies alone. Lengths and first pieces are worth 0.2."""


class Loop:
    """One session of training a run."""

    def __init__(self, run: Run, prepared: Corpus, training: Training, keeper: Keeper, log: Log) -> None:
        self.run, self.training, self.keeper, self.log = run, training, keeper, log
        self.config, self.crew, self.learning = run.config.train, training.crew, learning_of(run.config)
        self.batches = Batches(run.config, prepared, training.device, self.crew, training.packed)
        self.validator = self.learning.validator(run.config, prepared, training.device)
        self.total = self.batches.count_updates()
        self._began, self._first = time.monotonic(), training.progress.update
        self._line_began = self._began
        self._line_tokens = training.progress.sum_tokens
        self._open: tuple[int, Learnt | Late, UpdateBatch] | None = None
        """The update whose numbers are not counted yet, since the device may still be at it."""
        self._warned = False

    def fit(self, stop: StopRequest) -> Outcome:
        progress, config = self.training.progress, self.config
        ended, asked = self.crew.decide(lambda: self._ended(self._out_of_time())), None
        if ended is None:
            self.keeper.check_space()
            ended = f"max_epochs {config.max_epochs} is reached"  # stands if there are no more data
            for data in self.batches.updates(progress.epoch, progress.batch, progress.window):
                progress.update += 1
                self.crew.ask(stop.signal, self._out_of_time())
                self.training.time_share = self._time_share
                self._learn(data)
                self.log.display.tick(progress.update, self.total)
                ended = f"max_epochs {config.max_epochs} is reached" if data.last else self._ended_by()
                better = False
                if ended or any(progress.update % every == 0 for every in self._stops):
                    self._settle()
                if progress.update % config.log_every == 0 or ended:
                    self._log_line()
                if progress.update % config.validate_every == 0 or ended:
                    better = self._validate()
                    ended = ended or self._ended_by()
                asked = self.crew.agreed_signal(stop.signal)
                if asked:
                    self._settle()
                if progress.update % config.save_every == 0 or better or ended or asked:
                    self._line_began += self.keeper.save(last=bool(ended))  # speeds are those of training
                if ended or asked:
                    break
        if ended is None:
            stop.signal = asked
            return Outcome(f"stopped by {stop.name}", progress.update, stop.exit_status)
        if config.average:
            self.keeper.average(self.validator)
        return Outcome(ended, progress.update)

    def _ended_by(self) -> str | None:
        """Why the run is over, if it is: the same in every process."""
        return self._ended(self.crew.agreed_end(self._out_of_time()))

    def _ended(self, out_of_time: bool) -> str | None:
        """Only max_minutes looks at anything but the progress."""
        progress, config = self.training.progress, self.config
        if config.max_updates is not None and progress.update >= config.max_updates:
            return f"max_updates {config.max_updates} is reached"
        if config.patience is not None and progress.stale >= config.patience:
            return f"{config.metric} has not become better in {progress.stale} validations"
        if out_of_time:
            return f"max_minutes {config.max_minutes:g} is over"
        return None

    def _out_of_time(self) -> bool:
        return self.config.max_minutes is not None and self.log.elapsed >= 60 * self.config.max_minutes

    @property
    def _time_share(self) -> float:
        """Share of the time budget."""
        limit = self.config.max_minutes
        return 0.0 if limit is None else self.log.elapsed / (60 * limit)

    @property
    def _stops(self) -> tuple[int, int, int]:
        """After so many updates somebody wants the numbers of all of them."""
        return self.config.log_every, self.config.validate_every, self.config.save_every

    def _learn(self, data: UpdateBatch) -> None:
        """One update, and then the numbers of the one before, which are ready by now. Those of this one are
        counted at once where the host has waited for them anyway."""
        progress = self.training.progress
        try:
            learnt = learn(self.training, data)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            widest = max(data.micro_batches, key=lambda micro: micro.batch.shape.numel())
            rows, width = widest.batch.shape
            raise UserError(
                f"update {self.training.progress.update}: out of memory on {self.training.device} with a "
                f"batch of {rows} pairs of up to {width} target tokens (the longest pair is "
                f"{self.batches.origin_of_longest(widest)}): start a run with train.batch_tokens below "
                f"{self.config.batch_tokens} and more train.accumulate"
            ) from None
        self._settle()
        progress.epoch, progress.batch, progress.window = data.epoch, data.next_batch, data.window
        self._open = progress.update, learnt, data
        if isinstance(learnt, Learnt):
            self._settle()

    def _settle(self) -> None:
        """Count the update that is open, if one is."""
        if self._open is not None:
            found, self._open = self._open, None
            self._count(*found)

    def _count(self, update: int, learnt: Learnt | Late, data: UpdateBatch) -> None:
        progress = self.training.progress
        if learnt.finite:
            progress.bad_in_a_row = 0
            progress.tokens += learnt.tokens
            progress.sum_updates += 1
            progress.sum_tokens += learnt.tokens
            progress.sum_loss += learnt.loss
            progress.sum_nll += learnt.nll
            progress.sum_norm += learnt.norm
            return
        progress.skipped += 1
        progress.bad_in_a_row += 1
        self.log.warn(
            f"update {update} is skipped: its loss is {learnt.loss:g}, its gradient's norm "
            f"{learnt.norm:g}; the longest of its pairs is "
            f"{self.batches.origin_of_longest(data.micro_batches[-1])}"
        )
        if progress.bad_in_a_row >= self.config.max_bad_updates:
            raise UserError(
                f"update {update}: loss or gradient was not finite {progress.bad_in_a_row} times "
                f"in a row, so training stops; the last checkpoint is {self.run.last or 'none'}: "
                "resume with a lower optim.rate, a longer schedule.warmup or a lower train.clip"
            )

    def _log_line(self) -> None:
        progress = self.training.progress
        if not progress.sum_updates:  # nothing but skipped updates
            return
        now = time.monotonic()
        nll = progress.sum_nll / progress.sum_tokens
        record = {
            "update": progress.update,
            "epoch": progress.epoch + 1,
            "tokens": progress.tokens,
            "loss": progress.sum_loss / progress.sum_tokens,
            "nll": nll,
            **({"perplexity": math.exp(min(nll, 700.0))} if self.learning.has_perplexity else {}),
            "rate": self.training.rate,
            "gradient_norm": progress.sum_norm / progress.sum_updates,
            "skipped": progress.skipped,
        }
        status = Status(
            update=progress.update,
            total=self.total,
            epoch=progress.epoch + 1,
            loss=record["loss"],
            perplexity=record.get("perplexity"),
            rate=record["rate"],
            tokens_per_second=(progress.sum_tokens - self._line_tokens) / max(now - self._line_began, 1e-9),
            seconds_left=self._seconds_left(now),
            unit=self.learning.unit,
        )
        progress.clear_sums()
        self._line_began, self._line_tokens = now, 0
        self.log.train(record, status)

    def _seconds_left(self, now: float) -> float | None:
        """At the mean speed of this session, validations and all."""
        done = self.training.progress.update - self._first
        left = []
        if self.total is not None and done:
            left.append((now - self._began) / done * max(0, self.total - self.training.progress.update))
        if self.config.max_minutes is not None:
            left.append(max(0.0, 60 * self.config.max_minutes - self.log.elapsed))
        return min(left, default=None)

    def _validate(self) -> bool:
        """Look at the validation set; True where the result is the best so far."""
        if not len(self.validator):
            return False
        progress, metric, schedule = self.training.progress, self.config.metric, self.run.config.schedule
        began = time.monotonic()
        samples: list[Sample] = []

        def validate() -> dict[str, float]:
            found = self.validator.run(model, self.training.autocast())
            samples.extend(found.samples)
            return found.metrics

        with self.training.usable_model() as model:
            metrics = self.crew.decide(validate)
        better = progress.is_better(metric, metrics)
        if better:
            name = checkpoint.name_of(progress.update)
            progress.best = Best(name, metric, metrics[metric], metrics["loss"])
            progress.stale = progress.plateau_stale = 0
        else:
            progress.stale += 1
            progress.plateau_stale += 1
            if self.config.asgd and progress.average_since is None and progress.stale >= self.config.asgd:
                progress.average_since = progress.update + 1
                self.log.say(f"from update {progress.update + 1} on the mean of the weights is used")
            if schedule.name == "plateau" and progress.plateau_stale >= schedule.patience:
                progress.plateau_cuts += 1
                progress.plateau_stale = 0
        seconds = time.monotonic() - began
        self._line_began += seconds
        self.log.valid(progress.update, metrics, better, samples, seconds)
        self._warn_of_standstill(metrics["loss"])
        return better

    def _warn_of_standstill(self, loss: float) -> None:
        """Once, where pieces' frequencies are all that has been learnt by now."""
        update = self.training.progress.update
        early = update < max(_STANDSTILL_FROM, self.run.config.schedule.rise)
        if self._warned or early or (of_frequencies := self.validator.frequency_loss) is None:
            return
        if loss > of_frequencies - _STANDSTILL:
            self._warned = True
            self.log.warn(
                f"after {update} updates the loss on the validation set is {loss:.2f}, where knowing how "
                f"frequent pieces are, and nothing else, gives {of_frequencies:.2f}: if it stays "
                "there, begin anew with another optim.rate, a longer schedule.warmup, less dropout or, of a "
                "Transformer, model.norm=pre"
            )
