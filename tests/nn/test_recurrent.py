"""Recurrent layers with something left out: by the fused kernels, by the loop over positions, and by hand."""

import numpy as np
import pytest
import torch
from torch import nn

from dragoman.nn.dropout import StackMasks
from dragoman.nn.recurrent import CELLS, RecurrentStack, RecurrentState
from dragoman.nn.recurrent_layer import LayerPast, kernel, loop

ROWS, LENGTH, IN, WIDTH = 4, 6, 5, 3
LENGTHS = [6, 3, 1, 5]
CELL_NAMES = list(CELLS)


def layer_of(cell: str, bidirectional: bool = False) -> nn.RNNBase:
    torch.manual_seed(0)
    return CELLS[cell](IN, WIDTH, batch_first=True, bidirectional=bidirectional).double()


def random_past(cell: str, directions: int = 1) -> LayerPast:
    hidden, inner = torch.randn(2, directions, ROWS, WIDTH, dtype=torch.float64).unbind()
    return hidden, inner if cell == "lstm" else None


def own_weights(layer: nn.RNNBase) -> list[torch.Tensor]:
    return [weights[1] for weights in layer.all_weights]


@pytest.mark.parametrize("cell", CELL_NAMES)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_loop_with_nothing_left_out_is_the_kernel(cell: str, bidirectional: bool) -> None:
    layer, directions = layer_of(cell, bidirectional), 1 + bidirectional
    x, past = torch.randn(ROWS, LENGTH, IN, dtype=torch.float64), random_past(cell, directions)
    masks = torch.ones(directions, ROWS, WIDTH, dtype=torch.float64)
    ours, ours_after = loop(layer, x, past, own_weights(layer), masks)
    fused, fused_after = kernel(layer, x, past, own_weights(layer))
    theirs, _ = layer(x, past[0] if past[1] is None else past)
    assert torch.equal(fused, theirs)
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)
    torch.testing.assert_close(ours_after, fused_after, atol=1e-12, rtol=0)


@pytest.mark.parametrize("cell", CELL_NAMES)
def test_a_mask_on_the_past_by_hand(cell: str) -> None:
    """What the gates see is masked; what is carried past them is not."""
    layer, (hidden, inner) = layer_of(cell), random_past(cell)
    x = torch.randn(ROWS, LENGTH, IN, dtype=torch.float64)
    masks = torch.nn.functional.dropout(torch.ones(1, ROWS, WIDTH, dtype=torch.float64), 0.5)
    ours, _ = loop(layer, x, (hidden, inner), own_weights(layer), masks)
    w = {name: value.detach().numpy() for name, value in layer.state_dict().items()}
    for row in range(ROWS):
        h, m = hidden[0, row].numpy(), masks[0, row].numpy()
        c = np.zeros(WIDTH) if inner is None else inner[0, row].numpy()
        for t in range(LENGTH):
            seen = w["weight_ih_l0"] @ x[row, t].numpy() + w["bias_ih_l0"]
            asked = w["weight_hh_l0"] @ (m * h) + w["bias_hh_l0"]
            h, c = by_hand(cell, seen, asked, h, c)
            np.testing.assert_allclose(ours[row, t].detach().numpy(), h, atol=1e-12)


def by_hand(
    cell: str, seen: np.ndarray, asked: np.ndarray, h: np.ndarray, c: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    def sigmoid(z: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-z))

    if cell == "rnn":
        return np.tanh(seen + asked), c
    if cell == "gru":
        (xr, xz, xn), (hr, hz, hn) = np.split(seen, 3), np.split(asked, 3)
        z = sigmoid(xz + hz)
        return (1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn) + z * h, c
    i, f, g, o = np.split(seen + asked, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def stack_of(cell: str, bidirectional: bool = False, **dropouts: float) -> RecurrentStack:
    torch.manual_seed(1)
    made = RecurrentStack(cell, 8, 8, 2, 0.5, bidirectional, **dropouts)  # type: ignore[arg-type]
    return made.double().train()


def padded() -> tuple[torch.Tensor, torch.Tensor]:
    mask = torch.arange(LENGTH)[None] < torch.tensor(LENGTHS)[:, None]
    return torch.randn(ROWS, LENGTH, 8, dtype=torch.float64), mask


@pytest.mark.parametrize("cell", CELL_NAMES)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("weight_dropout", [0.0, 0.5])
def test_reading_by_position_is_reading_packed(cell: str, bidirectional: bool, weight_dropout: float) -> None:
    """The same sequences, once padded through the loop with masks of ones, once packed through the kernel."""
    stack = stack_of(cell, bidirectional, variational=True, weight_dropout=weight_dropout)
    x, mask = padded()
    torch.manual_seed(2)
    alone = stack.read(x, mask)
    torch.manual_seed(2)
    masks = stack.draw(ROWS)
    packed, end = stack.read_through(x, mask, masks)
    assert torch.equal(alone, packed)
    ones = torch.ones(2 * stack.directions, ROWS, stack.width, dtype=torch.float64)
    by_position, last = stack.read_through(x, mask, StackMasks(masks.between, ones, masks.weights))
    torch.testing.assert_close(by_position, packed, atol=1e-12, rtol=0)
    torch.testing.assert_close(last.hidden, end.hidden, atol=1e-12, rtol=0)
    if end.cell is not None:
        torch.testing.assert_close(last.cell, end.cell, atol=1e-12, rtol=0)
    assert (packed[~mask] == 0).all()


@pytest.mark.parametrize("cell", CELL_NAMES)
def test_dropped_weights_are_used_and_the_stored_ones_stay(cell: str) -> None:
    stack = stack_of(cell, weight_dropout=0.5)
    stack.dropout = 0.0
    before = {name: value.clone() for name, value in stack.state_dict().items()}
    x = torch.randn(ROWS, LENGTH, 8, dtype=torch.float64)
    zero = torch.zeros(2, ROWS, 8, dtype=torch.float64)
    state = RecurrentState(zero, zero if cell == "lstm" else None)
    masks = stack.draw(ROWS)
    out, _ = stack(x, state, masks)
    out.pow(2).sum().backward()
    assert masks.weights is not None
    for layer, dropped in zip(stack.layers, masks.weights, strict=True):
        stored = layer.all_weights[0][1]
        kept = dropped != 0
        assert 0.3 < kept.double().mean() < 0.7
        assert torch.equal(dropped[kept], stored[kept] / 0.5)
        assert stored.grad is not None
        assert (stored.grad[~kept] == 0).all()
        assert (stored.grad[kept] != 0).any()
    for name, value in stack.state_dict().items():
        assert torch.equal(value, before[name])
    with torch.no_grad():  # the same layers with these weights put in by hand
        for layer, dropped in zip(stack.layers, masks.weights, strict=True):
            layer.all_weights[0][1].copy_(dropped)
    expected, _ = stack(x, state)
    torch.testing.assert_close(out, expected, atol=1e-12, rtol=0)


def test_nothing_is_drawn_outside_training_or_at_rate_zero() -> None:
    everything = stack_of("lstm", variational=True, recurrent_dropout=0.5, weight_dropout=0.5)
    for stack in (everything.eval(), stack_of("lstm")):
        before = torch.get_rng_state()
        masks = stack.draw(ROWS)
        assert masks.between is masks.past is masks.weights is None
        assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("cell", list(CELLS))
def test_mixed_precision_leaves_recurrent_kernels_exact(cell: str) -> None:
    """On a GPU they would be computed in float16 otherwise, and learn next to nothing."""
    torch.manual_seed(1)
    stack = RecurrentStack(cell, 5, 6, 2, bidirectional=True)  # type: ignore[arg-type]
    x, mask = torch.randn(3, 4, 5), torch.arange(4) < torch.tensor([4, 2, 3])[:, None]
    expected = stack.read(x, mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = stack.read(x, mask)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, atol=0, rtol=0)
