"""Dropout on a CPU, and masks that are held: zero as often as asked, neutral in the mean."""

import pytest
import torch
from torch.nn import functional as F

from dragoman.nn.dropout import SequenceDropout, WordDropout, draw_mask, dropout, random_int16


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_dropout_on_a_cpu_is_that_of_its_formula(rate: float) -> None:
    torch.manual_seed(0)
    x = torch.randn(301, 401, dtype=torch.float64, requires_grad=True)
    out = dropout(x, rate)
    kept = out != 0
    torch.testing.assert_close(out, torch.where(kept, x / (1 - rate), 0.0), rtol=1e-12, atol=0)
    assert (~kept).double().mean().item() == pytest.approx(rate, abs=0.005)
    (gradient,) = torch.autograd.grad(out, x, torch.ones_like(out))
    torch.testing.assert_close(gradient, kept.double() / (1 - rate), rtol=1e-12, atol=0)


def test_every_number_has_bits_of_its_own() -> None:
    """Four numbers come from one draw: each place has the same share of each bit, and no two agree."""
    torch.manual_seed(0)
    bits = random_int16(40_000).view(-1, 4).to(torch.int64) & 0xFFFF
    for bit in range(16):
        ones = ((bits >> bit) & 1).double()
        assert ones.mean(0).tolist() == pytest.approx([0.5] * 4, abs=0.02), bit
        assert ones.T.corrcoef().fill_diagonal_(0).abs().max().item() < 0.05, bit


def test_dropout_follows_the_seed_and_leaves_the_rest_to_torch() -> None:
    x = torch.ones(5, 7, requires_grad=True)
    torch.manual_seed(3)
    first = dropout(x, 0.5)
    second = dropout(x, 0.5)
    torch.manual_seed(3)
    assert torch.equal(dropout(x, 0.5), first)
    assert not torch.equal(first, second)
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0) is x
    assert torch.equal(dropout(x, 1.0), torch.zeros_like(x))
    with torch.no_grad():
        torch.manual_seed(3)
        ours = dropout(x, 0.5)
        torch.manual_seed(3)
        assert torch.equal(ours, F.dropout(x, 0.5))
    assert dropout(x.bfloat16(), 0.5).dtype == torch.bfloat16


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_a_mask_keeps_the_expectation(rate: float) -> None:
    torch.manual_seed(0)
    mask = draw_mask(rate, 300, 400, like=torch.zeros(1, dtype=torch.float64))
    assert set(mask.unique().tolist()) == {0.0, 1 / (1 - rate)}
    assert (mask == 0).double().mean().item() == pytest.approx(rate, abs=0.005)
    assert mask.mean().item() == pytest.approx(1.0, abs=0.01)


def test_a_held_mask_is_the_same_at_every_position_and_another_in_every_row() -> None:
    torch.manual_seed(0)
    module = SequenceDropout(0.5, held=True)
    x = torch.ones(6, 7, 40)
    out = module(x, module.draw(6, 40, like=x))
    assert (out == out[:, :1]).all()
    assert len({tuple(row.tolist()) for row in out[:, 0]}) == 6
    assert set(out.unique().tolist()) == {0.0, 2.0}


def test_a_mask_that_is_not_held_is_usual_dropout() -> None:
    module, x = SequenceDropout(0.5, held=False), torch.ones(3, 4, 5)
    assert module.draw(3, 5, like=x) is None
    torch.manual_seed(1)
    ours = module(x, None)
    torch.manual_seed(1)
    assert torch.equal(ours, dropout(x, 0.5))


def test_words_are_left_out_wherever_they_occur() -> None:
    torch.manual_seed(0)
    module, weight = WordDropout(0.25), torch.randn(1000, 4)
    ids = torch.randint(0, 1000, (40, 50))
    mask = module.draw(weight)
    assert mask is not None
    out = module(weight[ids], ids, mask)
    assert torch.equal(out, (weight * mask[:, None])[ids])
    assert (mask == 0).double().mean().item() == pytest.approx(0.25, abs=0.03)


def test_outside_training_nothing_is_drawn() -> None:
    x = torch.ones(2, 3, 4)
    held, words = SequenceDropout(0.5, held=True).eval(), WordDropout(0.5).eval()
    before = torch.get_rng_state()
    assert held.draw(2, 4, like=x) is None
    assert words.draw(x[0]) is None
    assert torch.equal(held(x, None), x)
    assert torch.equal(SequenceDropout(0.5, held=False).eval()(x, None), x)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("rate", [0.25, 0.4])
def test_words_that_stay_are_enlarged(rate: float) -> None:
    """Every word is whole or not there, and the expectation is that of a pass without dropout."""
    torch.manual_seed(0)
    module, weight = WordDropout(rate), torch.ones(200, 3, dtype=torch.float64)
    mask = module.draw(weight)
    assert mask is not None and set(mask.tolist()) == {0.0, 1 / (1 - rate)}
    ids = torch.arange(200).view(4, 50)
    out = module(weight[ids], ids, mask)
    assert torch.equal(out, mask.view(4, 50, 1).expand(4, 50, 3))
