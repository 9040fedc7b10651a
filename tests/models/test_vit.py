"""Sequences of vectors: padding changes nothing."""

import torch

from dragoman.models.vit import VitConfig, vit


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
