"""The convolutional stem against convolutions over the image that the patches were cut from."""

import pytest
import torch
import torch.nn.functional as F

from dragoman.data.vectors.patches import image_patches
from dragoman.errors import UserError
from dragoman.models.base import Vocab
from dragoman.models.vit import VitConfig, vit
from dragoman.nn.conv_stem import ConvStem

SMALL = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "ff_dim": 8, "max_positions": 6}


@pytest.mark.parametrize(("channels", "patch"), [(1, 2), (3, 4), (3, 1)])
def test_it_reads_the_image_of_its_patches(channels: int, patch: int) -> None:
    torch.manual_seed(1)
    images = torch.randn(2, 2 * patch, 3 * patch, channels, dtype=torch.float64)
    stem = ConvStem(channels * patch**2, channels, 3, 16).double()
    vectors = torch.from_numpy(image_patches(images.numpy(), patch))
    x = images.permute(0, 3, 1, 2)
    for layer, norm in ((stem.first, stem.first_norm), (stem.second, stem.second_norm)):
        x = F.conv2d(x, layer.weight, layer.bias, padding=1)
        mean, variance = x.mean(dim=(1, 2, 3), keepdim=True), x.var(dim=(1, 2, 3), keepdim=True, correction=0)
        x = (x - mean) / (variance + norm.eps).sqrt() * norm.weight[:, None, None] + norm.bias[:, None, None]
        x = F.gelu(x)
    places = [
        x[:, :, patch * r :][:, :, :patch, patch * c :][..., :patch] for r in range(2) for c in range(3)
    ]
    expected = [torch.einsum("bcyx,dcyx->bd", part, stem.patch.weight) for part in places]
    torch.testing.assert_close(stem(vectors), torch.stack(expected, dim=1), atol=1e-12, rtol=0)


@pytest.mark.parametrize(("width", "middle"), [(16, (8, 8)), (64, (16, 32))])
def test_channels_grow_to_the_width(width: int, middle: tuple[int, int]) -> None:
    """A quarter and then half of it, but never fewer than eight."""
    stem = ConvStem(12, 3, 2, width)
    assert tuple(stem.first.weight.shape) == (middle[0], 3, 3, 3)
    assert tuple(stem.second.weight.shape) == (middle[1], middle[0], 3, 3)
    assert tuple(stem.patch.weight.shape) == (width, middle[1], 2, 2)


def test_every_parameter_of_a_model_with_it_learns() -> None:
    torch.manual_seed(1)
    config = VitConfig(**SMALL, input_dim=12, stem="convolution", columns=3)
    model = vit(config, Vocab(259, 259, shared=True))
    found = model.read(torch.randn(2, 6, 12), torch.ones(2, 7, dtype=torch.bool))
    (found * torch.randn_like(found)).sum().backward()
    still = [
        name for name, p in model.named_parameters() if p.grad is None or not float(p.grad.abs().sum()) > 0
    ]
    assert [name for name in still if not name.endswith("query_key_value.bias")] == []


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UserError, match=r"input_dim: 10 numbers are not the pixels of a square in 3"):
        VitConfig(**SMALL, input_dim=10, stem="convolution")
    with pytest.raises(UserError, match=r"model\.columns: 5 patches do not fill rows of 3"):
        ConvStem(4, 1, 3, 8)(torch.zeros(1, 5, 4))
