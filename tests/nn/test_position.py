"""Sinusoids by hand."""

import math

import pytest
import torch

from dragoman.nn.positions import SinusoidLayout, sinusoids


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
@pytest.mark.parametrize("dim", [6, 7])
def test_every_place_by_its_formula(dim: int, layout: SinusoidLayout) -> None:
    """An odd width has one cosine less than sines, in both orders."""
    found = sinusoids(4, dim, base=50.0, layout=layout, start=2)
    assert found.shape == (4, dim)
    half = (dim + 1) // 2
    for row in range(4):
        for column in range(dim):
            if layout == "halves":
                i, wave = column % half, math.sin if column < half else math.cos
            else:
                i, wave = column // 2, math.sin if column % 2 == 0 else math.cos
            expected = wave((row + 2) / 50.0 ** (2 * i / dim))
            assert found[row, column].item() == pytest.approx(expected, abs=1e-12)
    assert found.dtype == torch.float64
