"""Masks that are held: the same at every position, zero as often as asked, neutral in the mean."""

import pytest
import torch

from dragoman.nn.dropout import SequenceDropout, WordDropout, draw_mask


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_a_mask_keeps_the_expectation(rate: float) -> None:
    torch.manual_seed(0)
    mask = draw_mask(rate, 300, 400, like=torch.zeros(1, dtype=torch.float64))
    assert set(mask.unique().tolist()) == {0.0, 1 / (1 - rate)}
    assert (mask == 0).double().mean().item() == pytest.approx(rate, abs=0.005)
    assert mask.mean().item() == pytest.approx(1.0, abs=0.01)


def test_a_held_mask_is_the_same_at_every_position_and_another_in_every_row() -> None:
    torch.manual_seed(0)
    dropout = SequenceDropout(0.5, held=True)
    x = torch.ones(6, 7, 40)
    out = dropout(x, dropout.draw(6, 40, like=x))
    assert (out == out[:, :1]).all()
    assert len({tuple(row.tolist()) for row in out[:, 0]}) == 6
    assert set(out.unique().tolist()) == {0.0, 2.0}


def test_a_mask_that_is_not_held_is_torchs_dropout() -> None:
    dropout, x = SequenceDropout(0.5, held=False), torch.ones(3, 4, 5)
    assert dropout.draw(3, 5, like=x) is None
    torch.manual_seed(1)
    ours = dropout(x, None)
    torch.manual_seed(1)
    assert torch.equal(ours, torch.nn.functional.dropout(x, 0.5))


def test_words_are_left_out_wherever_they_occur() -> None:
    torch.manual_seed(0)
    dropout, weight = WordDropout(0.25), torch.randn(1000, 4)
    ids = torch.randint(0, 1000, (40, 50))
    mask = dropout.draw(weight)
    assert mask is not None
    out = dropout(weight[ids], ids, mask)
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
    dropout, weight = WordDropout(rate), torch.ones(200, 3, dtype=torch.float64)
    mask = dropout.draw(weight)
    assert mask is not None and set(mask.tolist()) == {0.0, 1 / (1 - rate)}
    ids = torch.arange(200).view(4, 50)
    out = dropout(weight[ids], ids, mask)
    assert torch.equal(out, mask.view(4, 50, 1).expand(4, 50, 3))
