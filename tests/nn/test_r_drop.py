"""R-Drop: the loss and its gradient by hand in NumPy, in chunks and whole, with padding and accumulation."""

import numpy as np
import pytest
import torch
from torch import Tensor

from battery.models import make
from dragoman.data.batch import collate
from dragoman.learning.cross_entropy import CrossEntropy, RDrop
from dragoman.nn import r_drop as module
from dragoman.nn.r_drop import r_drop

PAD, V, D = 0, 7, 4
SMOOTHING, WEIGHT = 0.1, 5.0
PAIRS = [(list(range(3, 3 + n)), list(range(4, 4 + n))) for n in (5, 2, 1, 7)]


def inputs() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    first, second = (torch.randn(6, D, dtype=torch.float64, generator=generator) for _ in range(2))
    matrix = torch.randn(V, D, dtype=torch.float64, generator=generator)
    return first, second, matrix, torch.tensor([3, 1, PAD, 6, PAD, 2])


def by_hand(a: np.ndarray, b: np.ndarray, target: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Loss of one position and its slopes by both rows of logits, from the definitions."""
    p, q = (np.exp(z - z.max()) / np.exp(z - z.max()).sum() for z in (a, b))
    expected = np.full(V, SMOOTHING / V)
    expected[target] += 1 - SMOOTHING
    kl_pq, kl_qp = (p * np.log(p / q)).sum(), (q * np.log(q / p)).sum()
    loss = (-(expected * np.log(p)).sum() - (expected * np.log(q)).sum() + WEIGHT * (kl_pq + kl_qp) / 2) / 2
    slope_a = (p - expected + WEIGHT / 2 * (p * (np.log(p / q) - kl_pq) + p - q)) / 2
    slope_b = (q - expected + WEIGHT / 2 * (q * (np.log(q / p) - kl_qp) + q - p)) / 2
    return loss, slope_a, slope_b


@pytest.mark.parametrize("logits_at_once", [1, 2 * V, 1 << 20])
def test_loss_and_gradient_are_those_by_hand(logits_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module._LOGITS_AT_ONCE, "cpu", logits_at_once)
    first, second, matrix, target = inputs()
    leaves = [x.clone().requires_grad_() for x in (first, second, matrix)]

    def project(hidden: Tensor) -> Tensor:
        return hidden @ leaves[2].t()

    total, nll = r_drop(leaves[0], leaves[1], project, V, target, PAD, SMOOTHING, WEIGHT)
    total.backward()
    a, b, w = (x.numpy() for x in (first, second, matrix))
    loss, likelihood = 0.0, 0.0
    slopes = np.zeros((2, 6, V))
    for row, expected in enumerate(target.tolist()):
        if expected != PAD:
            own, *slopes[:, row] = by_hand(a[row] @ w.T, b[row] @ w.T, expected)
            loss += own
            for z in (a[row] @ w.T, b[row] @ w.T):
                likelihood -= (z[expected] - np.log(np.exp(z).sum())) / 2
    np.testing.assert_allclose(total.item(), loss, rtol=1e-13)
    np.testing.assert_allclose(nll.item(), likelihood, rtol=1e-13)
    wanted = (slopes[0] @ w, slopes[1] @ w, slopes[0].T @ a + slopes[1].T @ b)
    for leaf, gradient in zip(leaves, wanted, strict=True):
        assert leaf.grad is not None
        np.testing.assert_allclose(leaf.grad.numpy(), gradient, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["transformer", "lstm-bahdanau"])
def test_without_dropout_it_is_the_cross_entropy(name: str) -> None:
    model = make(name)
    batch = collate(PAIRS)
    plain, with_r_drop = CrossEntropy(SMOOTHING)(model, batch), RDrop(WEIGHT, SMOOTHING)(model, batch)
    torch.testing.assert_close(with_r_drop.total, plain.total, rtol=1e-12, atol=0)
    torch.testing.assert_close(with_r_drop.nll, plain.nll, rtol=1e-12, atol=0)
    assert with_r_drop.count == plain.count


def test_two_batches_add_up_to_one_with_padding() -> None:
    """Without dropout, but with passes that differ: every second call says something else."""
    model = make("transformer")
    forward, calls = model.forward, [0]

    def other(*inputs: Tensor) -> Tensor:
        calls[0] += 1
        return forward(*inputs) * (1.0 if calls[0] % 2 else 1.3)

    model.forward = other  # type: ignore[method-assign]
    objective = RDrop(WEIGHT, SMOOTHING)
    whole = objective(model, collate(PAIRS))
    parts = [objective(model, collate(some)) for some in (PAIRS[:2], PAIRS[2:])]
    assert whole.total > CrossEntropy(SMOOTHING)(model, collate(PAIRS)).total
    torch.testing.assert_close(sum(part.total for part in parts), whole.total, rtol=1e-12, atol=0)
    assert sum(part.count for part in parts) == whole.count


def test_with_dropout_the_passes_differ_and_the_seed_repeats_them() -> None:
    model = make("transformer").train()
    batch = collate(PAIRS)

    def loss(weight: float) -> float:
        torch.manual_seed(1)
        return RDrop(weight)(model, batch).total.item()

    assert loss(5.0) == loss(5.0)
    assert loss(5.0) > loss(0.0)
