"""The moving average of weights against its formula, computed by hand in double precision."""

import pytest
import torch
from torch import Tensor, nn

from dragoman.training.optim import MovingAverage


class Counted(nn.Module):
    """Weights, and a counter that is no floating-point number."""

    steps: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, dtype=torch.float64))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def become(self, number: int) -> Tensor:
        """The weights after an update."""
        with torch.no_grad():
            self.weight.copy_(torch.tensor([number**2, 1.0 / number, (-1.0) ** number]))
            self.steps.fill_(number)
        return self.weight.detach().clone()


def exactly(average: MovingAverage, expected: Tensor, tolerance: float = 1e-13) -> None:
    torch.testing.assert_close(average.tensors["weight"], expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("finite", [None, torch.tensor(True)], ids=["host", "device"])
@pytest.mark.parametrize("decay", [0.5, 0.999])
def test_the_decay_grows_to_its_value(decay: float, finite: Tensor | None) -> None:
    """(1 + u) / (10 + u) passes 0.5 at update 8; it is below 0.999 in all of these."""
    model = Counted()
    average = MovingAverage(model, decay)
    expected = model.weight.detach().clone()
    for number in range(1, 21):
        weights = model.become(number)
        warm = min(decay, (1 + number) / (10 + number))
        expected = warm * expected + (1 - warm) * weights
        average.update(number, finite)
        exactly(average, expected, 1e-13 if finite is None else 1e-6)  # the device counts in single precision
        assert average.tensors["steps"] == number


def test_weights_that_get_other_memory_are_followed() -> None:
    """On a GPU, recurrent layers do so whenever their model is moved, even to where it is."""
    model = Counted()
    average = MovingAverage(model, 0.0)
    model.weight.data = model.weight.data.clone()
    expected = model.become(3)
    average.update(3)
    exactly(average, expected)


def test_an_update_that_is_not_finite_is_not_taken_in() -> None:
    model = Counted()
    average = MovingAverage(model, 0.5)
    model.become(1)
    average.update(1, torch.tensor(True))
    before = average.tensors["weight"].clone()
    model.become(2)
    average.update(2, torch.tensor(False))
    exactly(average, before)


def test_since_an_update_it_is_the_mean() -> None:
    """Without a decay it is the weights themselves up to there."""
    model = Counted()
    average = MovingAverage(model, 0.0)
    for number in range(1, 5):
        weights = model.become(number)
        average.update(number)
        exactly(average, weights)
    seen: list[Tensor] = []
    for number in range(5, 12):
        seen.append(model.become(number))
        average.update(number, since=5)
        exactly(average, torch.stack(seen).mean(dim=0))
