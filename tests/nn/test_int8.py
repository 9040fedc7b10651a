"""Products in whole numbers against NumPy in float64, and what they may not depend on."""

import numpy as np
import pytest
import torch
from torch import nn

from dragoman.models.base import matrices
from dragoman.nn import int8, packed
from dragoman.nn.embedding import Projection

pytestmark = pytest.mark.skipif(not int8.available, reason="this torch has no products of int8")


def rounded(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scales = np.abs(x).max(axis=-1, keepdims=True) / 127
    return np.rint(x / scales), scales


@pytest.mark.parametrize("shape", [(1,), (5,), (3, 4), (600,)])
@pytest.mark.parametrize("bias", [False, True])
def test_it_is_the_product_of_rounded_numbers(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(len(shape))
    weight, x = nn.Parameter(torch.randn(70, 48) / 7, requires_grad=False), torch.randn(*shape, 48) * 3
    offset = torch.randn(70) if bias else None
    int8.quantize([weight])
    with torch.inference_mode():
        found = packed.linear(x, weight, offset)
    numbers, rows = rounded(x.double().numpy())
    matrix, columns = rounded(weight.double().numpy())
    expected = numbers @ matrix.T * rows * columns[:, 0] + (0 if offset is None else offset.double().numpy())
    # A number that lies between two whole ones to the last bit may go either way: one step, times a weight.
    np.testing.assert_allclose(found.numpy(), expected, atol=float(rows.max() * np.abs(weight.numpy()).max()))
    assert np.abs(found.numpy() - expected).mean() < 1e-5


def test_other_rows_change_nothing() -> None:
    torch.manual_seed(1)
    weight = nn.Parameter(torch.randn(64, 32), requires_grad=False)
    int8.quantize([weight])
    x, loud = torch.randn(6, 32), 1000 * torch.randn(6, 32)
    with torch.inference_mode():
        alone = packed.linear(x, weight)
        assert torch.equal(packed.linear(torch.cat([x, loud]), weight)[:6], alone)
        assert torch.equal(packed.linear(torch.zeros(2, 32), weight), torch.zeros(2, 64))


def test_a_shortlist_has_the_same_numbers() -> None:
    torch.manual_seed(2)
    projection = Projection(nn.Parameter(torch.randn(100, 32)), bias=True).requires_grad_(False)
    int8.quantize(matrices(projection))
    pieces, x = torch.tensor([3, 50, 99]), torch.randn(4, 32)
    with torch.inference_mode():
        torch.testing.assert_close(projection.among(pieces)(x), projection(x)[:, pieces], atol=1e-6, rtol=0)


def test_what_learns_is_not_rounded() -> None:
    weight, x = nn.Parameter(torch.randn(16, 16)), torch.randn(2, 16)
    int8.quantize([weight])
    assert torch.equal(packed.linear(x, weight), nn.functional.linear(x, weight))
