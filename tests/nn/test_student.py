"""Student's t distribution against PyTorch's, and quantiles against known values and its own density."""

import math

import numpy as np
import pytest
import torch
from torch.distributions import StudentT

from dragoman.nn.student_t import log_density, student, student_quantile


def test_the_density_is_that_of_pytorch() -> None:
    torch.manual_seed(1)
    value, *parts = torch.randn(4, 50, dtype=torch.float64)
    location, scale, freedom = parts[0], parts[1].exp(), 2 + parts[2].exp()
    expected = StudentT(freedom, location, scale).log_prob(value)
    torch.testing.assert_close(log_density(value, location, scale, freedom), expected, atol=1e-12, rtol=0)


def test_any_three_numbers_are_a_distribution() -> None:
    location, scale, freedom = student(torch.tensor([[0.5, -200.0, -200.0], [1.0, 30.0, 5.0]]))
    assert location.tolist() == [0.5, 1.0]
    assert (scale > 0).all() and (freedom >= 2).all()
    assert log_density(torch.zeros(2), location, scale, freedom).isfinite().all()


def test_quantiles_with_two_degrees_of_freedom_and_of_the_normal_distribution() -> None:
    """For ν = 2 the quantile is (2q − 1) / √(2 q (1 − q))."""
    for level in (0.01, 0.1, 0.5, 0.75, 0.975):
        exact = (2 * level - 1) / math.sqrt(2 * level * (1 - level))
        found = student_quantile(level, torch.tensor([2.0, 1e9], dtype=torch.float64))
        normal = float(torch.distributions.Normal(0.0, 1.0).icdf(torch.tensor(level, dtype=torch.float64)))
        assert found.tolist() == pytest.approx([exact, normal], abs=2e-5)


@pytest.mark.parametrize("freedom", [2.3, 5.0, 31.0])
def test_the_share_below_a_quantile_is_its_level(freedom: float) -> None:
    """The density, summed with Simpson's rule from the middle."""
    for level in (0.05, 0.6, 0.99):
        end = float(student_quantile(level, torch.tensor(freedom, dtype=torch.float64)))
        points = torch.linspace(0, end, 2001, dtype=torch.float64)
        one = torch.ones_like(points)
        density = log_density(points, 0 * one, one, freedom * one).exp().numpy()
        weights = np.ones(2001)
        weights[1:-1:2], weights[2:-1:2] = 4, 2
        share = 0.5 + (weights * density).sum() * end / 2000 / 3
        assert share == pytest.approx(level, abs=1e-6)
