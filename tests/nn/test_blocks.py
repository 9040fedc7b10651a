"""Positions, embeddings, norms, feed-forward and initialisation against their definitions."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from dragoman.nn.dropout import dropout
from dragoman.nn.layer import FeedForward
from dragoman.nn.linear import Projection, TokenEmbedding, xavier_linear
from dragoman.nn.norm import Residual
from dragoman.nn.positions import LearnedPositions, SinusoidalPositions, sinusoids


def test_the_worked_example_of_sinusoids() -> None:
    table = sinusoids(5, 4)
    assert table[1].tolist() == pytest.approx([0.8415, 0.5403, 0.0100, 0.99995], abs=5e-5)
    products = table @ table.T
    assert products.diagonal().tolist() == pytest.approx([2.0] * 5)
    assert products[0, 1].item() == pytest.approx(1.5403, abs=5e-5)


@pytest.mark.parametrize("dim", [6, 7])
def test_sinusoids_are_the_formula_in_both_layouts(dim: int) -> None:
    expected = np.zeros((30, dim))
    for pos in range(30):
        for j in range(dim):
            angle = pos / 10000 ** ((j - j % 2) / dim)
            expected[pos, j] = math.cos(angle) if j % 2 else math.sin(angle)
    np.testing.assert_allclose(sinusoids(30, dim).numpy(), expected, atol=1e-12)
    if dim % 2 == 0:
        halves = np.concatenate([expected[:, 0::2], expected[:, 1::2]], axis=1)
        np.testing.assert_allclose(sinusoids(30, dim, layout="halves").numpy(), halves, atol=1e-12)


def test_positions_go_on_beyond_the_table_and_start_anywhere() -> None:
    positions = SinusoidalPositions(8)
    zeros = torch.zeros(1, 700, 8)
    whole = positions(zeros)
    torch.testing.assert_close(whole[0], sinusoids(700, 8).float())
    torch.testing.assert_close(positions(zeros[:, :1], start=613)[0, 0], whole[0, 613])
    torch.testing.assert_close(positions(zeros[:, :3], start=100)[0], whole[0, 100:103])


def test_another_base_turns_at_other_rates() -> None:
    zeros = torch.zeros(1, 600, 8, dtype=torch.float64)
    expected = [math.sin(599 * 50.0 ** (-2 * i / 8)) for i in range(4)]
    assert SinusoidalPositions(8, base=50.0)(zeros)[0, 599, 0::2].tolist() == pytest.approx(expected)


def test_learned_positions_reuse_their_last_row_beyond_the_table() -> None:
    positions = LearnedPositions(4, 8)
    x = torch.randn(2, 7, 8)
    rows = positions.weight[[0, 1, 2, 3, 3, 3, 3]]
    torch.testing.assert_close(positions(x), x + rows)
    torch.testing.assert_close(positions(x[:, :2], start=2), x[:, :2] + rows[2:4])
    torch.testing.assert_close(positions(x[:, :1], start=900), x[:, :1] + rows[3:4])


def test_embedding_scales_and_leaves_padding_zero_even_if_its_row_is_not_a_number() -> None:
    embedding = TokenEmbedding(10, 16, pad_id=0)
    with torch.no_grad():
        embedding.weight[0] = math.nan
    out = embedding(torch.tensor([[3, 0]]))
    torch.testing.assert_close(out[0, 0], embedding.weight[3] * 4)
    assert (out[0, 1] == 0).all()
    out.sum().backward()
    assert embedding.weight.grad is not None
    assert embedding.weight.grad.isfinite().all()


def test_embeddings_have_unit_variance_after_scaling() -> None:
    torch.manual_seed(0)
    out = TokenEmbedding(1000, 64, pad_id=0)(torch.arange(1, 1000)[None])
    assert out.std().item() == pytest.approx(1, abs=0.02)


def test_projection_shares_the_matrix_it_is_given() -> None:
    embedding = TokenEmbedding(10, 16, pad_id=0)
    projection = Projection(embedding.weight, bias=True)
    assert projection.weight is embedding.weight
    hidden = torch.randn(3, 16)
    torch.testing.assert_close(projection(hidden), hidden @ embedding.weight.T)


@pytest.mark.parametrize("place", ["pre", "post"])
def test_residual_orders(place: str) -> None:
    x, y = torch.randn(2, 3, 8), torch.randn(2, 3, 8)
    residual = Residual(8, dropout=0.5, place=place, eps=1e-5).eval()  # type: ignore[arg-type]

    def layer_norm(z: torch.Tensor) -> torch.Tensor:
        centred = z - z.mean(-1, keepdim=True)
        return centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()

    expected_before = layer_norm(x) if place == "pre" else x
    expected_after = x + y if place == "pre" else layer_norm(x + y)
    torch.testing.assert_close(residual.before(x), expected_before)
    torch.testing.assert_close(residual.after(x, y), expected_after)


def test_rms_norm_does_not_centre() -> None:
    torch.manual_seed(0)
    residual = Residual(8, dropout=0.0, place="pre", eps=1e-6, kind="rms").double()
    with torch.no_grad():
        residual.norm.weight.normal_()
    assert [name for name, _ in residual.named_parameters()] == ["norm.weight"]
    x = torch.randn(2, 3, 8, dtype=torch.float64)
    z, gain = x.numpy(), residual.norm.weight.detach().numpy()
    expected = z / np.sqrt((z**2).mean(-1, keepdims=True) + 1e-6) * gain
    np.testing.assert_allclose(residual.before(x).detach().numpy(), expected, atol=1e-12)


FUNCTIONS = {
    "relu": nn.ReLU(),
    "gelu": nn.GELU(),
    "gelu_tanh": nn.GELU("tanh"),
    "silu": nn.SiLU(),
    "sigmoid": nn.Sigmoid(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_feedforward_is_two_linear_layers(name: str) -> None:
    block = FeedForward(8, 32, activation=name)  # type: ignore[arg-type]
    x = torch.randn(2, 3, 8)
    torch.testing.assert_close(block(x), block.narrow(FUNCTIONS[name](block.widen(x))))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_gate_multiplies_the_two_halves_of_one_product(name: str) -> None:
    block = FeedForward(8, 32, activation=name, gated=True, bias=False)  # type: ignore[arg-type]
    assert [tuple(p.shape) for p in block.parameters()] == [(64, 8), (8, 32)]
    x = torch.randn(2, 3, 8)
    gate, passed = x @ block.widen.weight[:32].t(), x @ block.widen.weight[32:].t()
    torch.testing.assert_close(block(x), (FUNCTIONS[name](gate) * passed) @ block.narrow.weight.t())


def test_glu_is_torchs_own() -> None:
    block = FeedForward(8, 32, activation="sigmoid", gated=True)
    x = torch.randn(2, 3, 8)
    passed_first = torch.cat(block.widen(x).chunk(2, -1)[::-1], -1)
    torch.testing.assert_close(block(x), block.narrow(nn.functional.glu(passed_first)))


def test_blocks_of_a_packed_layer_are_initialised_as_if_alone() -> None:
    torch.manual_seed(0)
    linear = xavier_linear(100, [50, 300])
    for block, width in zip(linear.weight.split([50, 300]), [50, 300], strict=True):
        bound = math.sqrt(6 / (100 + width))
        assert block.abs().max().item() == pytest.approx(bound, rel=0.01)
    assert (linear.bias == 0).all()


@pytest.mark.parametrize("gated", [False, True])
def test_dropout_falls_on_what_is_inside_a_feedforward_block(gated: bool) -> None:
    torch.manual_seed(0)
    block = FeedForward(8, 32, dropout=0.5, gated=gated)
    x = torch.randn(2, 3, 8)
    inner = block.widen(x)
    inner = nn.functional.relu(inner[..., :32]) * inner[..., 32:] if gated else nn.functional.relu(inner)
    torch.manual_seed(1)
    expected = block.narrow(dropout(inner, 0.5))
    torch.manual_seed(1)
    torch.testing.assert_close(block(x), expected)
    torch.testing.assert_close(block.eval()(x), block.narrow(inner))
