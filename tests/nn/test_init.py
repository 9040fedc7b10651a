"""Every initialiser against its formula.

Bounds hold for any stream of random numbers, not for one seed alone. The variance of n normal numbers is off
by σ²·√(2/n) on average; six times that is allowed. Of n uniform numbers in ±a, the largest is below
(1 − ε)·a with the probability (1 − ε)ⁿ, which is below 1e-17 wherever it is used here.
"""

import math

import pytest
import torch
from torch import Tensor, nn

from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.gpt import GptConfig
from dragoman.models.layer_stack import gpt_weights
from dragoman.nn.linear import embedding_weight, normal_linear, xavier_linear
from dragoman.nn.positions import bias_table, position_weight, xavier_table
from dragoman.nn.recurrent_layer import recurrent_weights


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def assert_normal(weight: Tensor, deviation: float) -> None:
    n = weight.numel()
    numbers = weight.detach().double()
    assert abs(numbers.mean().item()) < 6 * deviation / math.sqrt(n)
    assert numbers.square().mean().item() == pytest.approx(deviation**2, rel=6 * math.sqrt(2 / n))
    far = (numbers.abs() > 2 * deviation).double().mean().item()  # 4.55% of a normal, none of a uniform
    assert far == pytest.approx(0.0455, abs=6 * math.sqrt(0.0455 / n))


def assert_uniform(weight: Tensor, bound: float) -> None:
    n = weight.numel()
    numbers = weight.detach().double()
    assert bound * (1 - 40 / n) < numbers.abs().max().item() <= bound * (1 + 1e-6)
    assert abs(numbers.mean().item()) < 6 * bound / math.sqrt(3 * n)
    assert numbers.square().mean().item() == pytest.approx(bound**2 / 3, rel=6 * math.sqrt(0.8 / n))


@pytest.mark.parametrize("gain", [1.0, 2.5])
def test_only_the_first_block_of_a_packed_layer_has_the_gain(gain: float) -> None:
    linear = xavier_linear(60, [50, 90, 50], first_gain=gain)
    for number, block in enumerate(linear.weight.split([50, 90, 50])):
        assert_uniform(block, math.sqrt(6 / (60 + len(block))) * (gain if number == 0 else 1.0))
    assert not linear.bias.any()
    assert xavier_linear(4, [5], bias=False).bias is None


@pytest.mark.parametrize("gain", [1.0, 4.0])
def test_a_normal_layer_has_the_variance_gain_by_width(gain: float) -> None:
    linear = normal_linear(50, 400, gain)
    assert_normal(linear.weight, math.sqrt(gain / 50))
    assert not linear.bias.any()


def test_tables() -> None:
    assert_normal(embedding_weight(300, 64), 1 / 8)
    assert_normal(position_weight(300, 64), 0.1)
    assert_normal(bias_table(300, 16, 64), 1 / 8)  # by the model's width, not by the number of heads
    assert_uniform(xavier_table(33, 80), math.sqrt(6 / 113))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_layers_gate_by_gate(kind: type[nn.LSTM | nn.GRU]) -> None:
    width = 40
    layer = kind(30, width, num_layers=2, bidirectional=True)
    recurrent_weights(layer)
    for name, parameter in layer.named_parameters():
        gates = parameter.detach().split(width)
        assert len(gates) == (4 if kind is nn.LSTM else 3)
        for number, gate in enumerate(gates):
            if name.startswith("weight_ih"):
                assert_uniform(gate, math.sqrt(6 / (width + gate.size(1))))
            elif name.startswith("weight_hh"):
                torch.testing.assert_close(gate @ gate.t(), torch.eye(width), rtol=0, atol=1e-5)
            else:
                # torch's order of an LSTM's gates: input, forget, cell, output
                open_ = kind is nn.LSTM and name.startswith("bias_ih") and number == 1
                assert torch.equal(gate, torch.full((width,), float(open_))), (name, number)


def test_an_open_forget_gate_keeps_half_of_what_a_cell_holds_and_more() -> None:
    """With no input at all, the cell of a step is σ(1) of the one before: 0.73, not 0.5."""
    layer = nn.LSTM(3, 5, batch_first=True)
    recurrent_weights(layer)
    cell = torch.randn(1, 1, 5)
    with torch.no_grad():
        _, (_, after) = layer(torch.zeros(1, 1, 3), (torch.zeros(1, 1, 5), cell))
    torch.testing.assert_close(after, cell / (1 + math.exp(-1)))


def test_the_projection_of_an_lstm() -> None:
    layer = nn.LSTM(30, 60, proj_size=50)
    recurrent_weights(layer)
    (projection,) = (p for name, p in layer.named_parameters() if name.startswith("weight_hr"))
    assert_uniform(projection, math.sqrt(6 / 110))


@pytest.mark.parametrize("layers", [1, 3])
def test_what_gpt_adds_to_its_stream_shrinks_with_the_depth(layers: int) -> None:
    config = GptConfig(num_layers=layers, model_dim=64, num_heads=4, ff_dim=96)
    model: EncoderDecoder = build_model("gpt", config, Vocab(200, 200, shared=True))
    added = 0
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            fill = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            assert torch.equal(parameter, torch.full_like(parameter, fill)), name
        elif name.endswith(("self_attention.out.weight", "feedforward.narrow.weight")):
            assert_normal(parameter, 0.02 / math.sqrt(2 * layers))
            added += 1
        else:
            assert_normal(parameter, 0.02)
    assert added == 2 * layers


def test_without_a_number_of_layers_nothing_shrinks() -> None:
    model = nn.ModuleDict({"feedforward": nn.ModuleDict({"narrow": nn.Linear(60, 90)})})
    bias = model["feedforward"]["narrow"].bias.clone()
    gpt_weights(model)
    assert_normal(model["feedforward"]["narrow"].weight, 0.02)
    assert torch.equal(model["feedforward"]["narrow"].bias, bias)
