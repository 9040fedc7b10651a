"""A session: open what a run needs, train until it ends or is stopped, leave everything in order."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from shlex import quote

import torch

from dragoman.checkpoint.files import is_disk_full
from dragoman.data.corpus import Prepared
from dragoman.errors import UserError, is_out_of_memory
from dragoman.files import explained
from dragoman.learning import learning_of
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Corpus, Outcome, Run
from dragoman.runs.opening import pick_device
from dragoman.runs.records import scored
from dragoman.training.budget import Clock, StopRequest, stop_on_signals
from dragoman.training.checkpoints import CheckpointPolicy
from dragoman.training.display import Display, duration
from dragoman.training.distributed import ALONE, Crew
from dragoman.training.finish import Finish
from dragoman.training.fit_counts import count_run
from dragoman.training.log import Log, NoLog, open_tensorboard
from dragoman.training.loop import Loop
from dragoman.training.report import read_reasons
from dragoman.training.state import Training
from dragoman.training.trackers import Careful, open_tracker


def train_run(run: Run, display: Display, crew: Crew = ALONE, clock: Clock | None = None) -> Outcome:
    """Train a run from its newest checkpoint, or from the beginning, to its end. `clock` began with the
    command or the call, where that was earlier."""
    clock = clock or Clock()
    device = pick_device(run.config.train.device, crew.local_rank if crew.connected else None)
    _refuse_other_crew(run.config, crew)
    # Before signals are held back: who waits for one that has died in between has to go when it is told to.
    crew.connect(device, run.config.train.timeout)
    with ExitStack() as stack, stop_on_signals() as stop:
        crew.stop = stop
        crew.decide(lambda: stack.enter_context(run.locked()))
        stack.enter_context(_threads(run.config.train.threads))
        prepared = run.corpus()
        if not run.config.counted:
            _refuse_without_end(run, prepared)
        log = _open_log(run, display, clock) if crew.first else NoLog()
        try:
            if run.config.counted:
                outcome, reported = count_run(run, run.prepared(), device, log, stop), False
            else:
                outcome = _learn(run, prepared, device, log, stop, crew)
                # The report has printed the result, so log.txt alone gets it once more.
                reports = run.config.train.report and isinstance(prepared, Prepared)
                reported = reports and not outcome.exit_status
            display.close()
            lines = closing_lines(run, outcome, log.elapsed)
            for line in lines:
                (log.note if reported and line != lines[-1] else log.say)(line)
        except UserError as error:
            log.note(f"stopped: {error}")
            raise
        except (OSError, RuntimeError, MemoryError) as error:
            told = _stopped_by(run, device, error)
            if told is None:
                raise
            log.note(f"stopped: {told}")
            raise told from error
        finally:
            display.close()
            log.close()
    run.outcome = outcome
    return outcome


def _learn(
    run: Run, prepared: Corpus, device: torch.device, log: Log, stop: StopRequest, crew: Crew
) -> Outcome:
    """Train by gradient descent."""
    training = Training(run.config, prepared, device, crew)
    policy = CheckpointPolicy(run, training, log)
    policy.restore()
    if training.progress.update:
        log.say(f"{run.directory}: resuming after update {training.progress.update}")
    if training.transfer.told:
        log.say(training.transfer.told)
    if run.config.train.accumulate % crew.size:
        log.warn(
            f"train.accumulate {run.config.train.accumulate} is no multiple of the {crew.size} processes, so "
            "some of them wait in every update"
        )
    loop = Loop(run, prepared, training, policy, log)
    for note in learning_of(run.config).notes(loop.batches.examples):
        log.say(note)
    begun = training.progress.update
    outcome = loop.fit(stop)
    if begun and outcome.update == begun and outcome.exit_status == 0:
        log.say(f"nothing is left to train: {outcome.reason}; raise that limit to train longer")
    if outcome.exit_status == 0:
        finish = Finish(run, prepared, device, log, stop, loop.budget, loop.validation_seconds)
        crew.decide(lambda: finish(outcome))
    return outcome


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Context manager: PyTorch uses `count` threads inside."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _open_log(run: Run, display: Display, clock: Clock) -> Log:
    with explained(run.directory):
        config = run.config.train
        writers = [open_tensorboard(run.directory / "tensorboard")] if config.tensorboard else []
        if config.tracker != "none":
            writers.append(open_tracker(run.config, run.directory.resolve().name))
        log = Log(run.directory, display, clock=clock)
        if not log.text_path.stat().st_size:
            for choice, reason in read_reasons(run.directory):
                log.note(f"plan: {choice}: {reason}")
    if writers:
        log.scalars = Careful(writers, log.warn)
    return log


def _refuse_other_crew(config: RunConfig, crew: Crew) -> None:
    if crew.size > 1 and config.counted:
        raise UserError("model.kind: a model that counts is fitted by one process; start it without torchrun")
    if crew.size > config.train.accumulate:
        raise UserError(
            f"train.accumulate: the {config.train.accumulate} batches of an update cannot be dealt to "
            f"{crew.size} processes; start fewer, or set it to {crew.size}, which makes the updates larger"
        )


def closing_lines(run: Run, outcome: Outcome, seconds: float) -> list[str]:
    """The result, and the next command to type."""
    directory = quote(str(run.directory))
    if outcome.exit_status and not outcome.update:
        return [
            f"{outcome.reason} before there was anything to save",
            f"start again with:  dragoman resume {directory}",
        ]
    if outcome.exit_status:
        return [
            f"{outcome.reason} after update {outcome.update}; everything is saved",
            f"continue with:  dragoman resume {directory}",
        ]
    lines = [f"finished at update {outcome.update} after {duration(seconds)}: {outcome.reason}"]
    best = run.best
    if best is not None:
        lines.append(
            f"best checkpoint: {best['name']}, {scored(best['metric'], best['value'])} on the validation set"
        )
    next_step = learning_of(run.config).next_step
    return [*lines, next_step.format(run=directory)] if next_step else lines


def _stopped_by(
    run: Run, device: torch.device, error: OSError | RuntimeError | MemoryError
) -> UserError | None:
    """A message if the machine ran out of memory or disk space; None for other errors."""
    last = "not known"
    with suppress(OSError):
        last = run.last or "none"
    if is_out_of_memory(error):
        return UserError(
            f"{run.directory}: out of memory on {device}; training stops, the last checkpoint is {last}: "
            "start a run with a lower train.batch_tokens and more train.accumulate, or a smaller model"
        )
    if not isinstance(error, OSError):
        return None
    free = ""
    if is_disk_full(error):
        free = f" ({shutil.disk_usage(run.directory).free:,} bytes are free)"
    return UserError(
        f"{error.filename or run.directory}: {error.strerror or error}{free}; training stops, the last "
        f"checkpoint is {last}: continue with  dragoman resume {quote(str(run.directory))}"
    )


def _refuse_without_end(run: Run, prepared: Corpus) -> None:
    config = run.config.train
    if not len(prepared.valid) and not (config.max_updates or config.max_epochs or config.max_minutes):
        raise UserError(
            "train.patience: there is no validation set, so nothing ends this run; set max_updates"
        )
