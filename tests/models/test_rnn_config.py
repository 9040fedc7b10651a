"""A recurrent model's configuration says in one sentence what cannot be."""

from typing import Any

import pytest

from dragoman.errors import UserError
from dragoman.models.rnn import RnnConfig


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_layers": 0}, "num_layers: expected a whole number of at least 1, found 0"),
        ({"max_positions": 0}, "max_positions: expected a whole number of at least 1, found 0"),
        ({"dropout": 1.0}, "dropout: expected a share from 0 up to 1, found 1.0"),
        ({"memory_dropout": 1.0}, "memory_dropout: expected a share from 0 up to 1, found 1.0"),
        ({"embedding_dropout": -0.1}, "embedding_dropout: expected a share from 0 up to 1, found -0.1"),
        ({"recurrent_dropout": 1.0}, "recurrent_dropout: expected a share from 0 up to 1, found 1.0"),
        ({"weight_dropout": 2.0}, "weight_dropout: expected a share from 0 up to 1, found 2.0"),
        ({"model_dim": 7}, "model_dim: two directions need an even width, found 7"),
        ({"attention": "none", "wiring": "luong"}, "wiring: luong needs attention"),
        ({"input_feeding": True}, "input_feeding: belongs to the wiring luong, not to bahdanau"),
        ({"attention": "dot", "attention_dim": 8}, "attention_dim: only concat and additive have one"),
    ],
)
def test_a_mistake_names_the_field(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        RnnConfig(**fields)
    assert str(caught.value).startswith(message)


def test_one_direction_may_have_any_width() -> None:
    assert RnnConfig(model_dim=7, bidirectional=False).model_dim == 7
