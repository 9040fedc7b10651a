"""Products in whole numbers against NumPy in float64, and int8 as a property of modules."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

from dragoman.errors import UserError
from dragoman.kernels import int8
from dragoman.nn.attention import SelfAttention
from dragoman.nn.kernel_choice import LINEAR, choose_kernel
from dragoman.nn.linear import Linear, Projection, quantize


@pytest.fixture(autouse=True)
def operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU whose int8 operators cannot be used, the same product in plain torch stands in for them."""
    if not int8.available:
        monkeypatch.setattr(int8, "available", True)
        monkeypatch.setattr(int8, "_pack", lambda numbers: numbers)
        monkeypatch.setattr(int8, "_multiply", by_hand)


def by_hand(x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    return (x.double() - 128) @ weight.double().t() * scales


def rounded(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scales = np.abs(x).max(axis=-1, keepdims=True) / 127
    return np.rint(x / scales), scales


def quantized_linear(inputs: int, outputs: int, bias: bool = False) -> Linear:
    module = Linear(inputs, outputs, bias=bias).requires_grad_(False)
    quantize(module)
    return module


@pytest.mark.parametrize("shape", [(1,), (5,), (3, 4), (600,)])
@pytest.mark.parametrize("bias", [False, True])
def test_it_is_the_product_of_rounded_numbers(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(len(shape))
    module, x = quantized_linear(48, 70, bias), torch.randn(*shape, 48) * 3
    with torch.inference_mode():
        found = module(x)
    numbers, rows = rounded(x.double().numpy())
    matrix, columns = rounded(module.weight.double().numpy())
    expected = numbers @ matrix.T * rows * columns[:, 0] + (module.bias.double().numpy() if bias else 0)
    # A number that lies between two whole ones to the last bit may go either way: one step, times a weight.
    step = float(rows.max() * np.abs(module.weight.numpy()).max())
    np.testing.assert_allclose(found.numpy(), expected, atol=step)
    assert np.abs(found.numpy() - expected).mean() < 1e-5


def test_the_operators_of_torch_are_those_of_the_stand_in() -> None:
    torch.manual_seed(3)
    x, weight = torch.randint(0, 256, (4, 32), dtype=torch.uint8), torch.randint(-127, 128, (8, 32))
    scales, zeros = torch.rand(8), torch.zeros(8, dtype=torch.int32)
    found = int8._multiply(x, int8._pack(weight.to(torch.int8)), scales, zeros)
    torch.testing.assert_close(found.double(), by_hand(x, weight, scales, zeros), rtol=1e-6, atol=1e-6)


def test_other_rows_change_nothing() -> None:
    torch.manual_seed(1)
    module = quantized_linear(32, 64)
    x, loud = torch.randn(6, 32), 1000 * torch.randn(6, 32)
    with torch.inference_mode():
        alone = module(x)
        assert torch.equal(module(torch.cat([x, loud]))[:6], alone)
        assert torch.equal(module(torch.zeros(2, 32)), torch.zeros(2, 64))


def test_a_shortlist_has_the_same_numbers() -> None:
    torch.manual_seed(2)
    projection = Projection(nn.Parameter(torch.randn(100, 32)), bias=True).requires_grad_(False)
    quantize(projection)
    pieces, x = torch.tensor([3, 50, 99]), torch.randn(4, 32)
    with torch.inference_mode():
        torch.testing.assert_close(projection.among(pieces)(x), projection(x)[:, pieces], atol=1e-6, rtol=0)


def test_what_learns_is_not_rounded() -> None:
    module, x = Linear(16, 16), torch.randn(2, 16)
    quantize(module)
    assert torch.equal(module(x), nn.functional.linear(x, module.weight, module.bias))


def test_a_deep_copy_is_quantized_and_independent() -> None:
    torch.manual_seed(4)
    attention, x = SelfAttention(64, 4, 16, 16).eval().requires_grad_(False), torch.randn(3, 1, 64)
    exact = copy.deepcopy(attention)
    quantize(attention)
    copied = copy.deepcopy(attention)
    with torch.inference_mode():
        before, _ = attention.step(x, attention.start(3, x))
        plain, _ = exact.step(x, exact.start(3, x))
        found, _ = copied.step(x, copied.start(3, x))
    assert copied.out.is_quantized and not exact.out.is_quantized
    assert torch.equal(found, before) and not torch.equal(found, plain)
    with torch.inference_mode():
        copied.out.weight.zero_()
        again, _ = attention.step(x, attention.start(3, x))
        silent, _ = copied.step(x, copied.start(3, x))
    assert torch.equal(again, before)
    assert torch.equal(silent, torch.zeros_like(silent))


def test_what_is_saved_is_the_exact_weight_and_loading_is_noticed() -> None:
    torch.manual_seed(5)
    first, second = quantized_linear(32, 8), quantized_linear(32, 8)
    x = torch.randn(2, 32)
    saved = first.state_dict()
    assert list(saved) == ["weight"] and torch.equal(saved["weight"], first.weight)
    with torch.inference_mode():
        assert not torch.equal(first(x), second(x))
        second.load_state_dict(saved)
        assert torch.equal(first(x), second(x))


def test_a_module_that_moves_to_another_type_computes_in_it() -> None:
    module, x = quantized_linear(32, 8), torch.randn(2, 32)
    with torch.inference_mode():
        rough = module(x)
        exact = module.double()(x.double())
        assert torch.equal(exact, nn.functional.linear(x.double(), module.weight))
        assert torch.equal(module.float()(x), rough)
        meta = module.to("meta")
        call = (torch.empty(2, 32, device="meta"), meta.weight, None, meta)
        assert choose_kernel(LINEAR, *call).name == "torch"


def test_threads_share_a_quantized_module() -> None:
    """Also while each of them finds out that the weight is another one."""
    torch.manual_seed(6)
    module, xs = quantized_linear(64, 64), [torch.randn(n + 1, 64) for n in range(8)]
    with torch.no_grad():
        module.weight.copy_(torch.randn(64, 64))

    def product(x: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            return module(x)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(product, xs))
    assert all(torch.equal(one, product(x)) for one, x in zip(found, xs, strict=True))
    other = Linear(64, 64, bias=False).requires_grad_(False)
    other.weight.copy_(module.weight)
    quantize(other)
    with torch.inference_mode():
        assert torch.equal(found[3], other(xs[3]))


def test_a_cpu_without_int8_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8, "available", False)
    with pytest.raises(UserError, match="no int8 products; choose float32"):
        quantize(Linear(4, 4))
