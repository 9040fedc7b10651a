"""The training loop.

    for every update:  learn ─▶ log ─▶ validate ─▶ save ─▶ stop?

It can be killed at any moment: what an update does is a pure function of the weights, the optimizer's state,
the seed and the number of the update, and all of these are in the checkpoint.
"""

import math
from shlex import quote

from dragoman import checkpoint
from dragoman.config import from_dict, to_dict
from dragoman.errors import UserError, is_out_of_memory
from dragoman.learning import learning_of
from dragoman.runs.directory import Corpus, Outcome, Run
from dragoman.runs.records import Sample, metric_name
from dragoman.training.batches import Batches, UpdateBatch
from dragoman.training.budget import COOLING, Budget, StopRequest
from dragoman.training.checkpoints import CheckpointPolicy
from dragoman.training.display import UpdateStatus, duration
from dragoman.training.estimate import SessionPace
from dragoman.training.log import Log
from dragoman.training.progress import Spent
from dragoman.training.state import Training
from dragoman.training.update import Late, Learnt, learn

_STANDSTILL_FROM = 500
"""No warning before this many updates, nor before the end of the warm-up."""
_STANDSTILL = 0.3
"""Nats by which the loss must be below that of unigram frequencies. Lengths alone give 0.2."""


class Loop:
    """One session of training a run."""

    def __init__(
        self, run: Run, prepared: Corpus, training: Training, policy: CheckpointPolicy, log: Log
    ) -> None:
        self.run, self.training, self.policy, self.log = run, training, policy, log
        self.config, self.crew, self.learning = run.config.train, training.crew, learning_of(run.config)
        self.batches = Batches(run.config, prepared, training.device, self.crew, training.packed)
        self.validator = self.learning.validator(run.config, prepared, training.device)
        self.total = self.batches.count_updates()
        self.budget = self._make_budget()
        if self.budget is not None and run.config.budgeted:
            self.validator.limit(self.budget.most_validating, log.clock.seconds)
        self.pace = SessionPace(log.clock.seconds, training.progress.update)
        self._line_tokens = training.progress.sum_tokens
        self._open: tuple[int, Learnt | Late, UpdateBatch] | None = None
        """The update whose results have not been read yet; the device may still be running it."""
        self._warned = self._told = False
        self.validation_seconds: float | None = None
        """Seconds of the last validation in this session."""

    def fit(self, stop: StopRequest) -> Outcome:
        progress, config = self.training.progress, self.config
        self.training.time_share = self.crew.decide(self._time_share)
        ended, asked = self._ended(), None
        if ended is not None and not progress.update:
            raise UserError(
                f"train.max_minutes: {config.max_minutes:g} minutes were over before the first update; "
                f"continue with  dragoman resume {quote(str(self.run.directory))} train.max_minutes=5"
            )
        if ended is None:
            self.policy.check_space()
            ended = f"max_epochs {config.max_epochs} is reached"  # used if the data end first
            for data in self.batches.updates(progress.epoch, progress.batch, progress.window):
                progress.update += 1
                self.training.time_share = self._time_share()
                self.crew.ask(stop.signal, self.training.time_share)
                self._learn(data)
                self.log.display.tick(progress.update, self.total)
                ended = f"max_epochs {config.max_epochs} is reached" if data.last else self._ended()
                better, (validates, saves) = False, self._due()
                logs = progress.update % config.log_every == 0
                if ended or logs or validates or saves:
                    self._settle()
                if logs or ended:
                    self._log_line()
                if validates or ended:
                    better = self._validate()
                    ended = ended or self._ended()
                asked = self.crew.agreed_signal(stop.signal)
                if asked:
                    self._settle()
                if saves or better or ended or asked:
                    self._save(last=bool(ended))
                if validates and not ended:
                    self._tell_time()
                if ended or asked:
                    break
        if ended is None:
            stop.signal = asked
            return Outcome(f"stopped by {stop.name}", progress.update, stop.exit_status)
        if config.average:
            self.policy.average(self.validator)
        return Outcome(ended, progress.update)

    def _make_budget(self) -> Budget | None:
        progress, minutes = self.training.progress, self.config.max_minutes
        if minutes is None:
            progress.spent = None
            return None
        # Checkpoints of earlier versions do not say how much time has passed.
        spent = progress.spent or Spent(minutes, self.log.elapsed_before if progress.update else 0.0)
        budget = Budget(self.config, self.log.clock, spent)
        agreed = self.crew.decide(lambda: to_dict(budget.spent))  # by the clock of the first process
        progress.spent = budget.spent = from_dict(Spent, agreed, "spent")
        return budget

    def _time_share(self) -> float:
        return 0.0 if self.budget is None else self.budget.share()

    def _ended(self) -> str | None:
        """The reason to stop, if there is one; the same in every process."""
        progress, config, share = self.training.progress, self.config, self.training.time_share
        if config.max_updates is not None and progress.update >= config.max_updates:
            return f"max_updates {config.max_updates} is reached"
        if self.budget is not None and share >= 1:
            return f"max_minutes {config.max_minutes:g} is reached"
        if self.run.config.budgeted:
            cooling = progress.spent.cooling_since if progress.spent else None
            if cooling is not None and share >= cooling + COOLING:
                return f"early stopping: {_unimproved(config.metric)}"
        elif config.patience is not None and progress.stale >= config.patience:
            name = metric_name(config.metric)
            return f"early stopping: {name} has not improved in {progress.stale} validations"
        return None

    def _due(self) -> tuple[bool, bool]:
        """Whether to validate, and whether to save, after this update."""
        update, config, share = self.training.progress.update, self.config, self.training.time_share
        if self.budget is None or config.validations is None:
            return update % config.validate_every == 0, update % config.save_every == 0
        validates = self.budget.validation_is_due(share)
        return validates, validates or self.budget.save_is_due(share)

    def _save(self, last: bool) -> None:
        if self.budget is not None:
            self.budget.note()
        seconds = self.pace.save = self.policy.save(last)
        self.pace.pause(seconds)  # speeds are those of training
        if self.budget is not None:
            self.budget.saved(self.training.time_share, seconds)

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
        """Read the results of the pending update, if there is one."""
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
        if not progress.sum_updates:  # all updates were skipped
            return
        seconds = self.pace.line(progress.update)
        if self.budget is not None:
            self.budget.spent.update_seconds = self.pace.update
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
        status = UpdateStatus(
            update=progress.update,
            total=self.total,
            epoch=progress.epoch + 1,
            loss=nll,
            objective=record["loss"],
            perplexity=record.get("perplexity"),
            rate=record["rate"],
            tokens_per_second=(progress.sum_tokens - self._line_tokens) / seconds,
            seconds_left=self._seconds_left(),
            unit=self.learning.unit,
        )
        progress.clear_sums()
        self._line_tokens = 0
        self.log.train(record, status)

    def _seconds_left(self) -> float | None:
        """Remaining seconds at the speed of this session, validations included."""
        update, costs, left = self.training.progress.update, self.pace.costs, []
        if self.total is not None and costs is not None:
            left.append(costs.of(self.config, update, max(update, self.total)))
        if self.budget is not None:
            left.append(self.budget.left)
        return min(left, default=None)

    def _tell_time(self) -> None:
        """Print the measured total time once, after the first validation."""
        left = self._seconds_left()
        if self._told or self.budget is not None or left is None:
            return
        self._told = True
        early = ", if it runs to its end" if self.config.patience else ""
        self.log.say(f"the whole run takes about {duration(self.log.elapsed + left)}{early}")

    def _validate(self) -> bool:
        """Validate. Returns True if the result is the best so far."""
        if not len(self.validator):
            return False
        progress, clock = self.training.progress, self.log.clock
        began = clock.seconds()
        samples: list[Sample] = []

        def validate() -> tuple[dict[str, float], float]:
            found = self.validator.run(model, self.training.autocast())
            samples.extend(found.samples)
            return found.metrics, clock.seconds() - began

        with self.training.usable_model() as model:
            metrics, seconds = self.crew.decide(validate)
        better = progress.count_validation(
            checkpoint.checkpoint_name(progress.update), self.config.metric, metrics
        )
        if not better:
            self._react()
        self.pace.pause(seconds)
        self.pace.validation = self.validation_seconds = seconds
        self.log.valid(progress.update, metrics, better, samples, seconds)
        if self.budget is not None:
            self.budget.validated(self.training.time_share, seconds)
            self._cool_down()
        self._warn_of_standstill(metrics["loss"])
        return better

    def _react(self) -> None:
        """After a validation without improvement: start averaging or cut the learning rate, if configured."""
        progress, schedule = self.training.progress, self.run.config.schedule
        if self.config.asgd and progress.average_since is None and progress.stale >= self.config.asgd:
            progress.average_since = progress.update + 1
            self.log.say(f"from update {progress.update + 1} on the mean of the weights is used")
        if schedule.name == "plateau" and progress.plateau_stale >= schedule.patience:
            progress.plateau_cuts += 1
            progress.plateau_stale = 0

    def _cool_down(self) -> None:
        """With a time budget, a run that has stopped improving decays its learning rate and ends early."""
        spent, patience = self.training.progress.spent, self.config.patience
        if spent is None or spent.cooling_since is not None or not self.run.config.budgeted or not patience:
            return
        if spent.stale >= patience:
            spent.cooling_since = self.training.time_share
            self.log.say(
                f"{_unimproved(self.config.metric)} in {spent.stale} validations: the "
                "learning rate falls to 0 now, and the run ends early"
            )

    def _warn_of_standstill(self, loss: float) -> None:
        """Warn once if the model has learnt nothing but token frequencies."""
        update = self.training.progress.update
        early = update < max(_STANDSTILL_FROM, self.run.config.schedule.rise)
        if self._warned or early or (of_frequencies := self.validator.frequency_loss) is None:
            return
        if loss > of_frequencies - _STANDSTILL:
            self._warned = True
            self.log.warn(
                f"after {update} updates the loss on the validation set is {loss:.2f}; token frequencies "
                f"alone give {of_frequencies:.2f}. If it stays there, start again with another optim.rate, "
                "a longer schedule.warmup, less dropout or, for a Transformer, model.norm=pre"
            )


def _unimproved(metric: str) -> str:
    """What a budget's early stopping waits for; the loss is asked beside every other metric."""
    other = "" if metric == "loss" else f"neither {metric_name(metric)} nor "
    return f"{other}loss has {'' if other else 'not '}improved"
