"""Losses for labels and scores of whole inputs or of words, and for forecasts."""

import torch
import torch.nn.functional as F

from dragoman.data.batch import TaskBatch, VectorBatch
from dragoman.data.vectors.config import SeriesInput
from dragoman.learning.loss import Loss, Objective
from dragoman.models.task_heads import TaskNetwork
from dragoman.nn.student_t import log_density, student
from dragoman.shapes import Float, Int, Tensor


class TaskLoss(Objective):
    """Fine-tuning: Σ −log p(label) over examples, over words, or over both ends of an answer, each with
    weight one half; for scores Σ (predicted − target)², both between 0 and 1. The count is the number of
    examples, or of words."""

    uses_every_weight = False

    def __init__(self, label_smoothing: float = 0.0) -> None:
        self.label_smoothing = label_smoothing

    def __call__(self, model: TaskNetwork, batch: TaskBatch, update: int = 0) -> Loss:  # noqa: ARG002
        scores = model(batch)
        total = task_loss(scores, batch, self.label_smoothing)
        nll = task_loss(scores, batch, 0.0) if self.label_smoothing else total
        return Loss(total, nll.detach(), batch.num_tokens)


def task_loss(scores: Tensor, batch: TaskBatch, label_smoothing: float) -> Float[Tensor, ""]:
    scores = scores.float() if scores.dtype.itemsize < 4 else scores
    if scores.dim() == 1:
        return (scores - batch.targets.to(scores.dtype)).square().sum()
    share = 1.0 if batch.allowed is None else 0.5
    if batch.allowed is not None or batch.choices is not None:
        label_smoothing = 0.0  # impossible labels have no share
    targets = batch.targets.flatten()
    rows = scores.flatten(0, 1) if scores.dim() == 3 else scores
    return share * F.cross_entropy(rows, targets, reduction="sum", label_smoothing=label_smoothing)


def label_loss(
    scores: Float[Tensor, "R C"], targets: Int[Tensor, "R"], smoothing: float
) -> Float[Tensor, ""]:
    return F.cross_entropy(scores.float(), targets, reduction="sum", label_smoothing=smoothing)


class VectorLabels(Objective):
    """Σ −log p(label) over images or series."""

    uses_every_weight = False

    def __init__(self, label_smoothing: float = 0.0) -> None:
        self.label_smoothing = label_smoothing

    def __call__(self, model: TaskNetwork, batch: VectorBatch, update: int = 0) -> Loss:  # noqa: ARG002
        scores = model(batch)
        nll = label_loss(scores, batch.targets, 0.0)
        total = label_loss(scores, batch.targets, self.label_smoothing) if self.label_smoothing else nll
        return Loss(total, nll.detach(), batch.num_tokens)


class ForecastLoss(Objective):
    """Σ (predicted − target)² over all numbers to come that are known, in units of the standard deviation of
    the training part; with quantiles q the pinball loss Σ mean_q max(q·d, (q − 1)·d), d = target − predicted
    (Koenker & Bassett 1978); with Student's t distribution Σ −log p(target). The count is the number of
    targets."""

    uses_every_weight = False

    def __init__(self, series: SeriesInput) -> None:
        self.series = series

    def __call__(self, model: TaskNetwork, batch: VectorBatch, update: int = 0) -> Loss:  # noqa: ARG002
        total = forecast_loss(model(batch), batch, self.series)
        return Loss(total, total.detach(), batch.num_tokens)


def forecast_loss(scores: Float[Tensor, "R F"], batch: VectorBatch, series: SeriesInput) -> Float[Tensor, ""]:
    assert batch.known is not None and batch.scale is not None, "these batches are of windows"
    if series.distribution == "student":
        location, scale, freedom = student(batch.unscaled(scores))
        said = batch.scaled(location[..., None])[..., 0]
        density = log_density(batch.targets, said, scale * batch.scale, freedom)
        return -density.masked_fill(~batch.known, 0.0).sum()
    said = batch.restored(scores)
    missed = (batch.targets[..., None] - said).masked_fill(~batch.known[..., None], 0.0)
    if not series.quantiles:
        return missed.square().sum()
    levels = torch.tensor(series.quantiles, device=missed.device)
    return torch.maximum(levels * missed, (levels - 1) * missed).mean(dim=-1).sum()
