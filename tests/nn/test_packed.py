"""Packed products against plain ones, and that a changed weight is packed anew."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dragoman.nn import packed
from dragoman.nn.embedding import Projection


def frozen(tensor: torch.Tensor) -> nn.Parameter:
    return nn.Parameter(tensor, requires_grad=False)


@pytest.mark.parametrize("rows", [1, 5, 64, 512, 513])
@pytest.mark.parametrize("bias", [False, True])
def test_the_product_is_the_plain_one(rows: int, bias: bool) -> None:
    torch.manual_seed(rows)
    weight, x = frozen(torch.randn(300, 48) / 7), torch.randn(rows, 48)
    offset = torch.randn(300) if bias else None
    with torch.inference_mode():
        found = packed.linear(x, weight, offset)
    expected = F.linear(x.double(), weight.detach().double(), None if offset is None else offset.double())
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=0)


def test_a_weight_that_changes_is_packed_anew() -> None:
    torch.manual_seed(0)
    weight, x = frozen(torch.randn(40, 16)), torch.randn(3, 16)
    for change in ("nothing", "in place", "loaded", "exchanged"):
        if change == "in place":
            weight.mul_(2)
        elif change == "loaded":
            Projection(weight).load_state_dict({"weight": torch.randn(40, 16)})
        elif change == "exchanged":
            weight.data = torch.randn(40, 16)
        with torch.inference_mode():
            found = packed.linear(x, weight)
        torch.testing.assert_close(found, x @ weight.t(), atol=1e-4, rtol=0)


def test_what_is_trained_is_never_packed() -> None:
    """A fused optimizer does not count its changes."""
    weight, x = nn.Parameter(torch.randn(40, 16)), torch.randn(3, 16)
    optimizer = torch.optim.AdamW([weight], lr=0.1, fused=True)
    for _ in range(2):
        with torch.inference_mode():
            assert torch.equal(packed.linear(x, weight), F.linear(x, weight))
        F.linear(x, weight).sum().backward()
        optimizer.step()


def test_with_a_gradient_and_in_other_types_the_product_is_the_plain_one() -> None:
    weight, x = nn.Parameter(torch.randn(40, 16)), torch.randn(3, 16)
    assert packed.linear(x, weight).requires_grad
    with torch.inference_mode():
        double = frozen(weight.double())
        assert torch.equal(packed.linear(x.double(), double), F.linear(x.double(), double))
        wide = packed.linear(x.view(3, 1, 16), weight)
        assert torch.equal(wide, F.linear(x.view(3, 1, 16), weight))


def test_a_packed_model_can_be_copied_and_saved() -> None:
    projection = Projection(frozen(torch.randn(40, 16)))
    x = torch.randn(3, 16)
    with torch.inference_mode():
        before = projection(x)
    copied = copy.deepcopy(projection)
    with torch.inference_mode():
        assert torch.equal(copied(x), before)
    assert list(projection.state_dict()) == ["weight"]
