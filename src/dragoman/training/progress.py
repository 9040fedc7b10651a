"""The progress of a run: what a checkpoint stores beside tensors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dragoman.data.sampler import FIRST, Window
from dragoman.runs.config import LOWER_IS_BETTER


@dataclass(frozen=True)
class Best:
    name: str
    metric: str
    value: float
    loss: float
    """Breaks ties: early on BLEU may be 0 for many validations although the model improves."""
    translated: int | None = None
    """Number of sentences that the metric is of, if it is limited by time. Metrics of different numbers of
    sentences cannot be compared; the loss is always that of all."""


@dataclass
class Spent:
    """The time spent of a budget of minutes."""

    minutes: float
    """The whole budget."""
    seconds: float = 0.0
    """Seconds elapsed when the checkpoint was written."""
    start: float | None = None
    """Seconds elapsed before the first update."""
    share: float = 0.0
    """Elapsed share of the time for updates when the checkpoint was written."""
    update_seconds: float = 0.0
    """Seconds per update, by the last log line."""
    next_validation: float | None = None
    """When the next validation is due, as a share of the time for updates; None if it is due by updates."""
    next_save: float = 0.0
    validation_seconds: float | None = None
    """Seconds of the last validation."""
    save_seconds: float = 0.0
    lowest_loss: float | None = None
    """Lowest validation loss so far."""
    stale: int = 0
    """Validations in a row without improvement of the metric or the loss."""
    cooling_since: float | None = None
    """The share of the time at which the early decay of the learning rate began."""


@dataclass
class TrainingProgress:
    """Every number is exact in JSON: Python writes floats so that they read back."""

    update: int = 0
    epoch: int = 0
    batch: int = 0
    """Number of batches of this epoch that have been used."""
    window: Window = FIRST
    """The window of the last used batch: earlier windows are skipped when a run is resumed."""
    tokens: int = 0
    """Target tokens used so far."""
    skipped: int = 0
    """Updates whose loss or gradient was not finite."""
    bad_in_a_row: int = 0
    sum_updates: int = 0
    """The following sums run since the last log line."""
    sum_tokens: int = 0
    sum_loss: float = 0.0
    sum_nll: float = 0.0
    sum_norm: float = 0.0
    best: Best | None = None
    stale: int = 0
    """Number of validations since the best one."""
    plateau_stale: int = 0
    plateau_cuts: int = 0
    average_since: int | None = None
    """The first update in the average of train.asgd."""
    metrics_bytes: int = 0
    """Length of metrics.jsonl; a resumed run cuts the file to it."""
    spent: Spent | None = None
    """None without a budget: then nothing here depends on the machine."""

    def is_better(self, metric: str, metrics: Mapping[str, float]) -> bool:
        """Whether this is the best validation so far."""
        value = metrics[metric]
        if not math.isfinite(value):
            return False
        if self.best is None or self.best.metric != metric:
            return True
        if value == self.best.value or metrics.get("translated") != self.best.translated:
            return metrics["loss"] < self.best.loss
        return value < self.best.value if metric in LOWER_IS_BETTER else value > self.best.value

    def count_validation(self, name: str, metric: str, metrics: Mapping[str, float]) -> bool:
        """Record a validation of the checkpoint `name`. Returns True if it is the best so far."""
        better = self.is_better(metric, metrics)
        if better:
            translated = metrics.get("translated")
            number = None if translated is None else int(translated)
            self.best = Best(name, metric, metrics[metric], metrics["loss"], number)
            self.stale = self.plateau_stale = 0
        else:
            self.stale += 1
            self.plateau_stale += 1
        if self.spent is not None:
            lowest = self.spent.lowest_loss
            lower = lowest is None or metrics["loss"] < lowest
            self.spent.stale = 0 if better or lower else self.spent.stale + 1
            if lower and math.isfinite(metrics["loss"]):
                self.spent.lowest_loss = metrics["loss"]
        return better

    def clear_sums(self) -> None:
        self.sum_updates = self.sum_tokens = 0
        self.sum_loss = self.sum_nll = self.sum_norm = 0.0
