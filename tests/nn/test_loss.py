"""The chunked loss against PyTorch's, gradients included."""

import pytest
import torch
import torch.nn.functional as F

from dragoman.nn import loss as loss_module
from dragoman.nn.loss import projected_cross_entropy


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk", [1, 700, 1 << 20])
def test_equal_to_torch(bias: bool, smoothing: float, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(loss_module._CHUNK_ELEMENTS, "cpu", chunk)
    generator = torch.Generator().manual_seed(1)

    def random(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64).requires_grad_()

    inputs = [random(50, 8), random(33, 8), *([random(33)] if bias else [])]
    target = torch.randint(0, 33, (50,), generator=generator)
    target[::4] = 0

    total, nll = projected_cross_entropy(
        inputs[0], inputs[1], inputs[2] if bias else None, target, ignore_id=0, smoothing=smoothing
    )
    gradients = torch.autograd.grad(total * 0.5, inputs)
    logits = F.linear(inputs[0], inputs[1], inputs[2] if bias else None)
    expected = F.cross_entropy(logits, target, ignore_index=0, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(nll, F.cross_entropy(logits, target, ignore_index=0, reduction="sum"))
    for ours, theirs in zip(gradients, torch.autograd.grad(expected * 0.5, inputs), strict=True):
        torch.testing.assert_close(ours, theirs)
    assert not nll.requires_grad


def test_gradcheck() -> None:
    generator = torch.Generator().manual_seed(2)
    hidden = torch.randn(5, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(7, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([1, 2, 0, 6, 3])
    assert torch.autograd.gradcheck(
        lambda h, w: projected_cross_entropy(h, w, None, target, 0, 0.1)[0], (hidden, weight)
    )


def test_autocast_stays_near_and_keeps_the_parameter_type() -> None:
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(64, 32, generator=generator, requires_grad=True)
    weight = (torch.randn(100, 32, generator=generator) / 6).requires_grad_()
    target = torch.randint(1, 100, (64,), generator=generator)
    exact = projected_cross_entropy(hidden, weight, None, target, 0, 0.1)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = projected_cross_entropy(hidden, weight, None, target, 0, 0.1)[0]
    assert rough.dtype == torch.float32
    assert rough.item() == pytest.approx(exact.item(), rel=1e-2)
    ours, theirs = torch.autograd.grad(rough, weight)[0], torch.autograd.grad(exact, weight)[0]
    assert ours.dtype == torch.float32
    assert ((ours - theirs).norm() / theirs.norm()).item() < 1e-2


@pytest.mark.parametrize(("rows", "size"), [(57, 100), (100, 57), (5, 2000), (66, 20)])
def test_never_more_logits_at_a_time_than_a_chunk_holds(
    rows: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least one row, else as many as the limit allows; every row once. No chunk is much longer than the
    others: chunks are of equal size, up to a multiple of 8 rows."""
    monkeypatch.setitem(loss_module._CHUNK_ELEMENTS, "cpu", 1000)
    taken: list[tuple[int, int]] = []
    sums = loss_module._sums

    def watched(logits: torch.Tensor, *others: object) -> object:
        taken.append((logits.size(0), logits.size(1)))
        return sums(logits, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(loss_module, "_sums", watched)
    target = torch.ones(rows, dtype=torch.long)
    projected_cross_entropy(torch.randn(rows, 4), torch.randn(size, 4), None, target, ignore_id=0)
    assert sum(own for own, _ in taken) == rows
    assert {width for _, width in taken} == {size}
    assert all(own == 1 or own * size <= 1000 for own, _ in taken)
    assert len(taken) <= 2 * -(-rows // max(1, 1000 // size))
    assert max(own for own, _ in taken) < rows / len(taken) + 8
