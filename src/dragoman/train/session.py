"""A session: open what a run needs, train until it ends or is stopped, leave everything in order."""

import shutil

import torch

from dragoman.data.corpus import Prepared
from dragoman.errors import UserError
from dragoman.train.count import count_run
from dragoman.train.display import Display, duration
from dragoman.train.keeper import Keeper
from dragoman.train.log import Log, open_tensorboard
from dragoman.train.loop import Loop
from dragoman.train.run import Outcome, Run, pick_device
from dragoman.train.signals import StopRequest, stop_on_signals
from dragoman.train.state import Training


def train_run(run: Run, display: Display) -> Outcome:
    """Train a run from its newest checkpoint, or from the beginning, to its end."""
    device = pick_device(run.config.train.device)
    with run.locked(), stop_on_signals() as stop:
        prepared = run.prepared()
        if not run.config.counted:
            _refuse_without_end(run, prepared)
        scalars = open_tensorboard(run.directory / "tensorboard") if run.config.train.tensorboard else None
        log = Log(run.directory, display, scalars)
        try:
            outcome = (count_run if run.config.counted else _learn)(run, prepared, device, log, stop)
            display.close()
            for line in closing_lines(run, outcome, log.elapsed):
                log.say(line)
        except OSError as error:
            raise _cannot_write(run, error) from error
        except UserError as error:
            log.note(f"stopped: {error}")
            raise
        finally:
            display.close()
            log.close()
    run.outcome = outcome
    return outcome


def _learn(run: Run, prepared: Prepared, device: torch.device, log: Log, stop: StopRequest) -> Outcome:
    """By gradients, update after update."""
    training = Training(run.config, prepared, device)
    keeper = Keeper(run, training, log)
    keeper.restore()
    if training.progress.update:
        log.say(f"{run.directory}: going on after update {training.progress.update}")
    return Loop(run, prepared, training, keeper, log).fit(stop)


def closing_lines(run: Run, outcome: Outcome, seconds: float) -> list[str]:
    """What happened, and what to type next."""
    if outcome.exit_status and not outcome.update:
        return [
            f"{outcome.reason} before there was anything to save",
            f"start again with:  dragoman resume {run.directory}",
        ]
    if outcome.exit_status:
        return [
            f"{outcome.reason} after update {outcome.update}; everything is saved",
            f"go on with:  dragoman resume {run.directory}",
        ]
    lines = [f"finished at update {outcome.update} after {duration(seconds)}: {outcome.reason}"]
    best = run.best
    if best is not None:
        lines.append(
            f"best checkpoint: {best['name']}, {best['metric']} {best['value']:.4g} on the validation set"
        )
    return [*lines, f"translate with:  dragoman translate {run.directory}"]


def _cannot_write(run: Run, error: OSError) -> UserError:
    """The log or best.json could not be written; the checkpoints are not touched by it."""
    free = shutil.disk_usage(run.directory).free
    return UserError(
        f"{error.filename or run.directory}: {error.strerror or error} ({free:,} bytes are free); training "
        f"stops, the last checkpoint is {run.last or 'none'}: go on with  dragoman resume {run.directory}"
    )


def _refuse_without_end(run: Run, prepared: Prepared) -> None:
    config = run.config.train
    if not len(prepared.valid) and not (config.max_updates or config.max_epochs or config.max_minutes):
        raise UserError(
            "train.patience: there is no validation set, so nothing ends this run; set max_updates"
        )
