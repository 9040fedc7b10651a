"""Losses for labels and scores of whole inputs or of words."""

import torch.nn.functional as F

from dragoman.data.batch import TaskBatch, VectorBatch
from dragoman.learning.loss import Loss, Objective
from dragoman.models.task_heads import TaskNetwork
from dragoman.models.vit import Vit
from dragoman.shapes import Float, Tensor


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


class VectorLabels(Objective):
    """−log p of the label of a sequence of vectors."""

    def __call__(self, model: Vit, batch: VectorBatch, update: int = 0) -> Loss:  # noqa: ARG002
        scores = model(batch.vectors, batch.mask)
        total = F.cross_entropy(scores.float(), batch.labels, reduction="sum")
        return Loss(total, total.detach(), batch.num_tokens)
