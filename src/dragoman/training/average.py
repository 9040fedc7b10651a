"""Checkpoint averaging (Vaswani et al. 2017, section 6.1).

The average is stored as another checkpoint of the run. Every command can open it. Training cannot resume from
it, because it has no optimizer state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman import checkpoint
from dragoman.checkpoint.model import build_with, write_best
from dragoman.config import from_dict, to_dict
from dragoman.errors import UserError
from dragoman.learning import learning_of
from dragoman.runs.config import LOWER_IS_BETTER
from dragoman.runs.directory import DATA, Run
from dragoman.runs.opening import pick_device
from dragoman.training.progress import Best, TrainingProgress
from dragoman.training.state import uses_bf16


@dataclass(frozen=True)
class Averaged:
    name: str
    sources: tuple[str, ...]
    update: int
    """The update of the newest averaged checkpoint."""
    metrics: dict[str, float]
    """Metrics on the validation set; empty without one."""
    before: Best | None
    """The best checkpoint of the run before averaging."""
    better: bool
    """Whether the average is the best checkpoint now."""


def last_checkpoints(run: Run, count: int) -> list[str]:
    """The newest checkpoints, oldest first."""
    names = checkpoint.names(run.checkpoints)
    _refuse_too_few(run, count, len(names), "")
    return names[-count:]


def best_checkpoints(run: Run, count: int) -> list[str]:
    """The best checkpoints by the run's validation metric, oldest first."""
    metric = run.config.train.metric
    worth = {
        checkpoint.checkpoint_name(record["update"]): record[metric]
        for record in run.metrics
        if record["kind"] == "valid" and record.get(metric) is not None
    }
    names = [name for name in checkpoint.names(run.checkpoints) if name in worth]
    _refuse_too_few(run, count, len(names), " that were validated")
    in_order = sorted(names, key=lambda name: worth[name], reverse=metric not in LOWER_IS_BETTER)
    return sorted(in_order[:count], key=int)


def _refuse_too_few(run: Run, count: int, found: int, which: str) -> None:
    if count < 2:
        raise UserError(f"average: a mean needs at least 2 checkpoints, found {count}")
    if found < count:
        raise UserError(
            f"{run.directory}: it has {found} checkpoints{which}, not {count}; ask for fewer, or let a run "
            f"keep more from its beginning on:  dragoman train … train.keep={count}"
        )


def average_run(run: Run, names: Sequence[str], name: str, device: str = "auto") -> Averaged:
    """Write the mean of the checkpoints `names` as the checkpoint `name`. If it is better on the validation
    set, it becomes the best of the run."""
    if run.config.counted:
        raise UserError(f"{run.directory}: its model is fitted by counting; there is nothing to average")
    with run.locked():
        paths = [run.checkpoints / source for source in names]
        state = checkpoint.load_checkpoint(paths[-1]).state
        mean = checkpoint.average_checkpoints(paths, str(state["weights"]))
        metrics = _validate(run, state, mean, pick_device(device))
        metric, progress = run.config.train.metric, from_dict(TrainingProgress, state["progress"], "progress")
        progress.best = before = _best(run)
        better = bool(metrics) and progress.is_better(metric, metrics)
        best = Best(name, metric, metrics[metric], metrics["loss"]) if better else before
        save_average(run, name, mean, state, best)
    return Averaged(name, tuple(names), progress.update, metrics, before, better)


def save_average(
    run: Run, name: str, mean: Mapping[str, Tensor], state: Mapping[str, Any], best: Best | None
) -> None:
    """Keep only the progress of the training state; if `best` is this checkpoint, update best.json."""
    progress = {**state["progress"], "best": None if best is None else to_dict(best)}
    checkpoint.save(
        run.checkpoints, name, {"model": mean}, {**state, "weights": "model", "progress": progress}
    )
    if best is not None and best.name == name:
        write_best(run.directory, to_dict(best))


def _best(run: Run) -> Best | None:
    """The best checkpoint, with the loss that breaks ties, which is stored in the checkpoint itself."""
    best = run.best
    if best is None:
        return None
    state = checkpoint.load_checkpoint(run.checkpoints / Path(best["name"]).name).state
    return from_dict(Best, state["progress"]["best"], f"{best['name']}: best")


def _validate(
    run: Run, state: Mapping[str, Any], mean: Mapping[str, Tensor], device: torch.device
) -> dict[str, float]:
    if not (run.directory / DATA).is_dir():
        return {}
    config = run.config.train
    validator = learning_of(run.config).validator(run.config, run.corpus(), device)
    if not len(validator):
        return {}
    model = build_with(state["model"], mean, "average").to(device)
    bf16 = uses_bf16(config, device)  # the same precision as in other validations
    return validator.run(model, torch.autocast(device.type, dtype=torch.bfloat16, enabled=bf16)).metrics
