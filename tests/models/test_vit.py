"""Sequences of vectors: how they begin, and that padding changes nothing."""

import math

import pytest
import torch

from dragoman.models.vit import VitConfig, vit


@pytest.mark.parametrize("width", [1, 48])
def test_the_input_projection_begins_as_glorot_and_bengio_say(width: int) -> None:
    """Uniform in ±√(6 / (fan in + fan out)); with 0.02 instead, a series of one channel is not heard."""
    torch.manual_seed(0)
    config = VitConfig(num_layers=1, model_dim=256, num_heads=2, ff_dim=8, num_labels=3, input_dim=width)
    model = vit(config)
    limit = math.sqrt(6 / (width + 256))
    weight = model.inputs.weight.detach()
    assert 0.97 * limit < weight.abs().max() <= limit
    torch.testing.assert_close(weight.std(), torch.tensor(limit / math.sqrt(3)), rtol=0.08, atol=0)
    assert model.inputs.bias.abs().max() == 0
    others = model.layers[0].self_attention.query_key_value.weight.detach()
    torch.testing.assert_close(others.std(), torch.tensor(0.02), rtol=0.02, atol=0)


def test_padding_changes_nothing() -> None:
    torch.manual_seed(0)
    config = VitConfig(
        num_layers=2, model_dim=8, num_heads=2, ff_dim=8, num_labels=3, input_dim=5, max_positions=6
    )
    model = vit(config).eval()
    short = torch.randn(2, 4, 5)
    padded = torch.cat([short, torch.full((2, 2, 5), 9.0)], dim=1)
    mask = torch.tensor([[True] * 4 + [False] * 2] * 2)
    with torch.no_grad():
        expected = model.read_layers(short, mask[:, :4])
        found = model.read_layers(padded, mask)
        for layer, other in zip(expected, found, strict=True):
            torch.testing.assert_close(other[:, :5], layer)
        torch.testing.assert_close(model(padded, mask), model(short, mask[:, :4]))
