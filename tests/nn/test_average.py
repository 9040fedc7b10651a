"""The average attention network against its equations in NumPy."""

import numpy as np
import torch

from dragoman.nn.average_attention import AverageAttention, RunningSum
from dragoman.nn.layer import FeedForward
from dragoman.nn.mask import CAUSAL
from dragoman.nn.positions import UNRELATED
from dragoman.nn.state import Moves


def test_a_gate_between_the_input_and_the_mean_of_the_past() -> None:
    torch.manual_seed(0)
    module = AverageAttention(6, FeedForward(6, 9)).double()
    x = torch.randn(2, 5, 6, dtype=torch.float64)
    w = {name: value.detach().numpy() for name, value in module.named_parameters()}
    expected = np.zeros((2, 5, 6))
    for b in range(2):
        for t in range(5):
            mean, now = x[b, : t + 1].numpy().mean(0), x[b, t].numpy()
            inner = np.maximum(w["feedforward.widen.weight"] @ mean + w["feedforward.widen.bias"], 0)
            g = w["feedforward.narrow.weight"] @ inner + w["feedforward.narrow.bias"]
            gates = w["gates.weight"] @ np.concatenate([now, g]) + w["gates.bias"]
            i, f = np.split(1 / (1 + np.exp(-gates)), 2)
            expected[b, t] = i * now + f * g
    with torch.no_grad():
        np.testing.assert_allclose(module(x, CAUSAL, UNRELATED).numpy(), expected, atol=1e-12)


def test_a_sum_that_moves_row_by_row() -> None:
    past = RunningSum(torch.tensor([[1.0], [2.0]]), length=3).expand(2)
    assert past.total.flatten().tolist() == [1, 1, 2, 2]
    past = past.append(torch.tensor([[0.1], [0.2], [0.3], [0.4]]))
    assert past.length == 4
    moved = past.move(Moves.of(torch.tensor([1, 1, 3, 2])))
    torch.testing.assert_close(moved.total.flatten(), torch.tensor([1.2, 1.2, 2.4, 2.3]))
    assert moved.keep_rows(torch.tensor([2])).total.item() == past.total[3].item()


def test_a_sum_is_kept_in_float32_at_least() -> None:
    module = AverageAttention(4, FeedForward(4, 4)).bfloat16()
    past = module.start(2, like=torch.zeros(1, dtype=torch.bfloat16))
    out, past = module.step(torch.ones(2, 1, 4).bfloat16(), past, UNRELATED)
    assert (out.dtype, past.total.dtype) == (torch.bfloat16, torch.float32)
