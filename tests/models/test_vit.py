"""Sequences of vectors: how they begin, and that padding changes nothing."""

import math

import pytest
import torch

from dragoman.models.base import Vocab
from dragoman.models.vit import VitConfig, vit
from dragoman.nn.mask import EVERYTHING
from dragoman.nn.positions import UNRELATED

VOCAB = Vocab(259, 259, shared=True)


@pytest.mark.parametrize("width", [1, 48])
def test_the_input_projection_begins_as_glorot_and_bengio_say(width: int) -> None:
    """Uniform in ±√(6 / (fan in + fan out)); with 0.02 instead, a series of one channel is not heard."""
    torch.manual_seed(0)
    config = VitConfig(num_layers=1, model_dim=256, num_heads=2, ff_dim=8, input_dim=width)
    model = vit(config, VOCAB)
    limit = math.sqrt(6 / (width + 256))
    weight = model.inputs.weight.detach()
    assert 0.97 * limit < weight.abs().max() <= limit
    torch.testing.assert_close(weight.std(), torch.tensor(limit / math.sqrt(3)), rtol=0.08, atol=0)
    assert model.inputs.bias.abs().max() == 0
    others = model.layers[0].self_attention.query_key_value.weight.detach()
    torch.testing.assert_close(others.std(), torch.tensor(0.02), rtol=0.02, atol=0)


def test_padding_changes_nothing_and_every_parameter_learns() -> None:
    torch.manual_seed(0)
    config = VitConfig(num_layers=2, model_dim=8, num_heads=2, ff_dim=8, input_dim=5, max_positions=6)
    model = vit(config, VOCAB).double().eval()
    short = torch.randn(2, 4, 5, dtype=torch.float64)
    padded = torch.cat([short, torch.full((2, 2, 5), torch.nan)], dim=1)
    mask = torch.tensor([[True] * 5 + [False] * 2] * 2)
    with torch.no_grad():
        expected = model.read_layers(short, mask[:, :5])
        found = model.read_layers(padded, mask)
        alone = model.read(short[1:], mask[1:, :5])
    for layer, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other[:, :5], layer, atol=1e-12, rtol=0)
    torch.testing.assert_close(alone[0], expected[-1][1], atol=1e-12, rtol=0)
    model.read(short, mask[:, :5]).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0 or name.endswith("query_key_value.bias"), name


def test_every_layer_is_there_and_the_last_one_after_the_norm() -> None:
    torch.manual_seed(0)
    config = VitConfig(num_layers=3, model_dim=8, num_heads=2, ff_dim=8, input_dim=5, max_positions=6)
    model = vit(config, VOCAB).double().eval()
    vectors, mask = torch.randn(2, 4, 5, dtype=torch.float64), torch.ones(2, 5, dtype=torch.bool)
    with torch.no_grad():
        found = model.read_layers(vectors, mask)
        assert len(found) == 1 + 3
        read = [layer(x, EVERYTHING, UNRELATED) for layer, x in zip(model.layers, found[:-1], strict=True)]
        for after, expected in zip(found[1:], [*read[:-1], model.final_norm(read[-1])], strict=True):
            torch.testing.assert_close(after, expected, atol=1e-12, rtol=0)
