"""The loss of labels: a sum over examples, never in half precision; an end of an answer counts for half."""

import pytest
import torch
from torch import Tensor

from dragoman.data.batch import TaskBatch, VectorBatch
from dragoman.data.vectors.config import SeriesInput
from dragoman.learning.labels import ForecastLoss, TaskLoss, VectorLabels, task_loss
from dragoman.learning.loss import Objective
from dragoman.models.base import Vocab
from dragoman.models.task_heads import HeadConfig, TaskNetwork
from dragoman.models.vit import VitConfig, vit


def batch_of(targets: Tensor, span: bool = False) -> TaskBatch:
    rows = torch.ones(2, 3, dtype=torch.long)
    return TaskBatch(
        rows, rows.bool(), rows, targets, None, rows.bool() if span else None, None, len(targets)
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_scores_are_summed_at_least_in_single_precision(dtype: torch.dtype) -> None:
    """What is wider keeps its width: gradients are checked in double precision."""
    torch.manual_seed(0)
    scores, batch = torch.randn(2, 5).to(dtype), batch_of(torch.tensor([1, 4]))
    loss = task_loss(scores, batch, 0.0)
    assert loss.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    log_probs = scores.double().log_softmax(dim=-1)
    assert loss.item() == pytest.approx(-(log_probs[0, 1] + log_probs[1, 4]).item(), rel=1e-6)


def test_both_ends_of_an_answer_count_for_half() -> None:
    torch.manual_seed(0)
    scores = torch.randn(2, 2, 3)
    targets = torch.tensor([[0, 2], [1, 1]])
    log_probs = scores.double().log_softmax(dim=-1)
    expected = -0.5 * log_probs.gather(2, targets[..., None]).sum()
    for smoothing in (0.0, 0.1):  # which gives nothing to places where no answer can be
        loss = task_loss(scores, batch_of(targets, span=True), smoothing)
        assert loss.item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize("kind", ["series", "forecast"])
def test_a_head_on_the_embeddings_leaves_layers_without_a_gradient(kind: str) -> None:
    """So none of these objectives may say that it uses every weight: several processes would wait for the
    gradients of all of them."""
    network = vit(
        VitConfig(num_layers=1, model_dim=8, num_heads=2, ff_dim=8, max_positions=3, input_dim=4),
        Vocab(259, 259, shared=True),
    )
    head = HeadConfig(kind, 2, layers="embeddings", dropout=0.0, places=3)  # type: ignore[arg-type]
    model = TaskNetwork(network, head)
    about = torch.randn(5, 3, 4), torch.ones(5, 4, dtype=torch.bool)
    objective: Objective = VectorLabels()
    batch = VectorBatch(*about, torch.tensor([0, 1, 1, 0, 1]), 5)
    if kind == "forecast":
        objective, one = ForecastLoss(SeriesInput()), torch.ones(5, 1, 1)
        batch = VectorBatch(*about, torch.randn(5, 2, 1), 10, one, one, torch.ones(5, 2, 1).bool())
    objective(model, batch).total.backward()
    assert any(parameter.grad is None for parameter in model.parameters())
    assert not objective.uses_every_weight and not TaskLoss().uses_every_weight
