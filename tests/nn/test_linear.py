"""Linear layers by oneDNN against plain products, and that a changed weight is rearranged again."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dragoman.kernels import onednn
from dragoman.nn.attention import SelfAttention
from dragoman.nn.kernel_choice import half_refusal
from dragoman.nn.linear import Projection, SelectedRows, linear


def frozen(tensor: torch.Tensor) -> nn.Parameter:
    return nn.Parameter(tensor, requires_grad=False)


@pytest.mark.parametrize("shape", [(1,), (5,), (64, 1), (16, 4), (512,), (513,)])
@pytest.mark.parametrize("bias", [False, True])
def test_the_product_is_the_plain_one(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(shape[0])
    weight, x = frozen(torch.randn(2800, 48) / 7), torch.randn(*shape, 48)
    offset = torch.randn(2800) if bias else None
    with torch.inference_mode():
        found = linear(x, weight, offset)
        beside = linear(x.transpose(0, -1).contiguous().transpose(0, -1), weight, offset)
    expected = F.linear(x.double(), weight.detach().double(), None if offset is None else offset.double())
    assert found.shape == expected.shape
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(beside.double(), expected, atol=1e-5, rtol=0)
    assert (weight in onednn._layouts) == (onednn.available and shape != (513,))


@pytest.mark.parametrize(
    ("rows", "size", "pays"),
    [
        (0, (4096, 512), False),
        (1, (768, 256), False),  # one row: a plain product reads the matrix once too
        (1, (1024, 256), True),
        (4, (256, 256), False),
        (4, (512, 256), True),
        (64, (256, 256), True),
        (64, (64, 64), False),
        (513, (512, 512), False),
    ],
)
def test_only_what_was_measured_to_pay_is_packed(rows: int, size: tuple[int, int], pays: bool) -> None:
    assert onednn._is_faster(rows, torch.empty(size)) == pays


def test_a_frozen_model_takes_its_steps_with_packed_layers() -> None:
    """The step of a wide Transformer layer for 64 rows, against the same layer in float64."""
    torch.manual_seed(1)
    attention = SelfAttention(256, 4, 64, 64).eval().requires_grad_(False)
    x = torch.randn(64, 1, 256)
    with torch.inference_mode():
        found, _ = attention.step(x, attention.start(64, x))
        exact = copy.deepcopy(attention).double()
        expected, _ = exact.step(x.double(), exact.start(64, x.double()))
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=0)
    layers = (attention.query_key_value, attention.out)
    assert all((layer.weight in onednn._layouts) == onednn.available for layer in layers)


@pytest.mark.parametrize("rows", [3, 64])
def test_selected_rows(rows: int) -> None:
    torch.manual_seed(rows)
    weight, bias, x = torch.randn(900, 160), torch.randn(900), torch.randn(rows, 160)
    product = SelectedRows(Projection(frozen(weight)), bias, torch.arange(len(weight)))
    with torch.inference_mode():
        for _ in range(2):
            torch.testing.assert_close(
                product(x).double(), x.double() @ weight.double().t() + bias.double(), atol=1e-4, rtol=0
            )
    assert (product.layout is not None) == onednn.available


def test_a_weight_that_changes_is_packed_anew() -> None:
    torch.manual_seed(0)
    weight, x = frozen(torch.randn(1024, 160)), torch.randn(3, 160)
    for change in ("nothing", "in place", "loaded", "exchanged"):
        if change == "in place":
            weight.mul_(2)
        elif change == "loaded":
            Projection(weight).load_state_dict({"weight": torch.randn(1024, 160)})
        elif change == "exchanged":
            weight.data = torch.randn(1024, 160)
        with torch.inference_mode():
            found = linear(x, weight)
        torch.testing.assert_close(found, x @ weight.t(), atol=1e-3, rtol=0)
        assert not onednn.available or onednn._layouts[weight][0] == (weight.data_ptr(), weight._version)


def test_what_is_trained_is_never_packed() -> None:
    """A fused optimizer does not count its changes."""
    weight, x = nn.Parameter(torch.randn(1024, 160)), torch.randn(3, 160)
    optimizer = torch.optim.AdamW([weight], lr=0.1, fused=True)
    for _ in range(2):
        with torch.inference_mode():
            assert torch.equal(linear(x, weight), F.linear(x, weight))
        F.linear(x, weight).sum().backward()
        optimizer.step()


def test_with_a_gradient_and_in_other_types_the_product_is_the_plain_one() -> None:
    weight, x = nn.Parameter(torch.randn(1024, 160)), torch.randn(3, 160)
    assert linear(x, weight).requires_grad
    with torch.inference_mode():
        double = frozen(weight.double())
        assert torch.equal(linear(x.double(), double), F.linear(x.double(), double))
        wide = linear(x.view(3, 1, 160), weight)
        assert torch.equal(wide, F.linear(x.view(3, 1, 160), weight))


def test_a_packed_model_can_be_copied_and_saved() -> None:
    projection = Projection(frozen(torch.randn(1024, 160)))
    x = torch.randn(3, 160)
    with torch.inference_mode():
        before = projection(x)
    copied = copy.deepcopy(projection)
    with torch.inference_mode():
        assert torch.equal(copied(x), before)
    assert list(projection.state_dict()) == ["weight"]


def test_float16_under_autocast_is_left_to_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recurrent layers give float16 where autocast says bfloat16, and a product of both would have no
    gradient."""
    monkeypatch.setattr("dragoman.nn.kernel_choice.triton_refusal", lambda *_: None)
    weight = torch.nn.Parameter(torch.ones(2, 3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert half_refusal(torch.ones(1, 3, dtype=torch.bfloat16), weight) is None
        assert (
            half_refusal(torch.ones(1, 3, dtype=torch.float16), weight) == "autocast would convert the input"
        )


def test_without_the_library_nothing_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert not onednn._is_available()


def test_operators_that_say_something_else_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    monkeypatch.setattr(torch, "equal", lambda *_: False)
    assert not onednn._is_available()
