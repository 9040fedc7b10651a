"""The convolutional block against torch's convolution, its window against the whole, its first weights."""

import math

import pytest
import torch
import torch.nn.functional as F

from dragoman.models.convs2s import ConvolutionBlock
from dragoman.nn.linear import normal_linear
from dragoman.nn.positions import LearnedPositions
from dragoman.nn.state import InputWindow

SHAPES = [(1, 1), (2, 1), (3, 1), (4, 1), (2, 4), (3, 2), (5, 3)]  # kernel width, dilation


def make(kernel_width: int, dilation: int, causal: bool) -> ConvolutionBlock:
    torch.manual_seed(0)
    block = ConvolutionBlock(6, kernel_width, dilation, causal).double()
    with torch.no_grad():
        block.gates.bias.normal_()
    return block


def inputs(length: int = 9) -> torch.Tensor:
    return torch.randn(2, length, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("kernel_width", "dilation"), SHAPES)
def test_the_block_is_torchs_convolution_with_a_gate(kernel_width: int, dilation: int, causal: bool) -> None:
    block, x = make(kernel_width, dilation, causal), inputs()
    kernel = block.gates.weight.unflatten(1, (kernel_width, 6)).transpose(1, 2)  # 2D D k
    reach = (kernel_width - 1) * dilation
    left = reach if causal else reach // 2
    padded = F.pad(x.transpose(1, 2), (left, reach - left))
    signal, gate = (
        F.conv1d(padded, kernel, block.gates.bias, dilation=dilation).transpose(1, 2).chunk(2, dim=-1)
    )
    expected = (signal * torch.sigmoid(gate) + x) / math.sqrt(2)
    torch.testing.assert_close(block(x), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("kernel_width", "dilation"), SHAPES)
def test_which_positions_an_output_sees(kernel_width: int, dilation: int, causal: bool) -> None:
    block, x = make(kernel_width, dilation, causal), inputs(40).requires_grad_()
    at = 20
    (gradient,) = torch.autograd.grad(block(x)[:, at].sum(), x)
    seen = gradient.abs().sum(dim=(0, 2)).nonzero()[:, 0].tolist()
    reach = (kernel_width - 1) * dilation
    first = at - (reach if causal else reach // 2)
    assert seen == sorted({at, *range(first, first + reach + 1, dilation)})  # `at` by the residual too


@pytest.mark.parametrize(("kernel_width", "dilation"), SHAPES)
def test_a_window_goes_on_where_the_whole_goes(kernel_width: int, dilation: int) -> None:
    block, x = make(kernel_width, dilation, causal=True), inputs(30)
    with torch.no_grad():
        window, steps = block.start(2, like=x), []
        for position in range(30):
            out, window = block.step(x[:, position : position + 1], window, position)
            steps.append(out)
        torch.testing.assert_close(torch.cat(steps, dim=1), block(x), atol=1e-12, rtol=0)
    assert window.inputs.size(1) == (kernel_width - 1) * dilation


def test_a_window_is_a_ring_whose_rows_can_be_moved() -> None:
    window = InputWindow.empty(2, 4, 1, like=torch.zeros(1))
    for position in range(6):
        window = window.put(torch.tensor([[[10.0 + position]], [[20.0 + position]]]), position)
    assert [x.flatten().tolist() for x in window.every(2, position=6)] == [[12.0, 22.0], [14.0, 24.0]]
    moved = window.rows(torch.tensor([1, 1, 0]))
    assert [x.flatten().tolist() for x in moved.every(4, position=6)] == [[22.0, 22.0, 12.0]]


def test_dropout_is_drawn_in_training_alone() -> None:
    block, x = ConvolutionBlock(6, 3, dropout=0.5).double(), inputs()
    assert not torch.equal(block(x), block(x))
    assert torch.equal(block.eval()(x), block(x))


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_first_weights(dropout: float) -> None:
    torch.manual_seed(0)
    block = ConvolutionBlock(100, 3, dropout=dropout)
    assert block.gates.weight.std().item() == pytest.approx(math.sqrt(4 * (1 - dropout) / 300), rel=0.01)
    linear = normal_linear(200, 300)
    assert linear.weight.std().item() == pytest.approx(math.sqrt(1 / 200), rel=0.01)
    assert linear.weight.mean().item() == pytest.approx(0, abs=1e-3)
    assert (block.gates.bias == 0).all()
    assert (linear.bias == 0).all()
    assert LearnedPositions(200, 300).weight.std().item() == pytest.approx(0.1, rel=0.01)


def test_the_variance_of_a_signal_survives_a_deep_stack() -> None:
    """What the first weights and √½ are for. A small signal goes through a gate at one half: the gate's input
    has 4 times the variance, and its output a quarter of that."""
    torch.manual_seed(0)
    x = torch.randn(8, 200, 128) * 0.1
    before = x.var().item()
    with torch.no_grad():
        for _ in range(10):
            x = ConvolutionBlock(128, 3)(x)
    assert x.var().item() == pytest.approx(before, rel=0.15)


def test_learned_positions_start_anywhere_and_share_the_last_row_beyond() -> None:
    positions = LearnedPositions(5, 4)
    whole = positions(torch.zeros(1, 8, 4))[0]
    torch.testing.assert_close(whole[:5], positions.weight)
    torch.testing.assert_close(whole[5:], positions.weight[-1:].expand(3, 4))
    for start in range(8):
        torch.testing.assert_close(positions(torch.zeros(1, 1, 4), start)[0, 0], whole[start])
