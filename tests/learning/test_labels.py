"""The loss of labels: a sum over examples, never in half precision; an end of an answer counts for half."""

import pytest
import torch
from torch import Tensor

from dragoman.data.batch import TaskBatch
from dragoman.learning.labels import task_loss


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
