"""A convolutional model's configuration says in one sentence what cannot be."""

from typing import Any

import pytest

from dragoman.errors import UserError
from dragoman.models.convs2s import ConvS2SConfig


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_layers": 0}, "num_layers: expected a whole number of at least 1, found 0"),
        ({"num_decoder_layers": 0}, "num_decoder_layers: expected a whole number of at least 1, found 0"),
        ({"conv_dim": -1}, "conv_dim: expected a whole number of at least 1, found -1"),
        ({"max_positions": 0}, "max_positions: expected a whole number of at least 1, found 0"),
        ({"dilation_base": 0}, "dilation_base: expected a whole number of at least 1, found 0"),
        ({"dropout": 1.0}, "dropout: expected a share from 0 up to 1, found 1.0"),
        ({"kernel_width": 4}, "kernel_width: the encoder looks equally far to both sides"),
        ({"attention_dim": 8}, "attention_dim: only concat and additive have one, dot has none"),
        ({"dilation_base": 40}, "dilation_base: 40 grows beyond 1024 positions in 4 layers"),
        (
            {"dilation_base": 2, "num_decoder_layers": 30, "dilation_cycle": 30},
            "dilation_base: 2 grows beyond 1024 positions in 30 layers",
        ),
    ],
)
def test_a_mistake_names_the_field(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        ConvS2SConfig(**fields)
    assert str(caught.value).startswith(message)


def test_dilation_grows_with_the_layer_and_begins_again() -> None:
    assert ConvS2SConfig().dilations(4) == [1, 1, 1, 1]
    assert ConvS2SConfig(dilation_base=2).dilations(7) == [1, 2, 4, 8, 16, 1, 2]
    assert ConvS2SConfig(dilation_base=3, dilation_cycle=2).dilations(4) == [1, 3, 1, 3]


def test_a_causal_kernel_may_have_any_width() -> None:
    assert ConvS2SConfig(decoder_kernel_width=4).decoder_kernel_width == 4
