"""A model in words: the plan names what it trains."""

from dataclasses import replace

import pytest

from dragoman.models import describe, outline
from dragoman.models.presets import PRESETS, preset


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("transformer-student", "Transformer, 6 + 1 layers, width 256, 4 heads, feed-forward 1,024"),
        ("lstm", "LSTM with additive attention, 1 + 1 layers, width 256"),
        ("lstm-no-attention", "LSTM without attention, "),
        ("gpt-tiny", "GPT, "),
        ("markov", "counts of n-grams (Markov), order "),
    ],
)
def test_a_preset_in_words(name: str, begins: str) -> None:
    assert describe(*preset(name)).startswith(begins)


def test_the_essence_of_a_model() -> None:
    assert outline(*preset("transformer-student")) == "Transformer, 6 + 1 layers of width 256"
    assert outline(*preset("lstm")) == "LSTM with additive attention, 1 + 1 layers of width 256"
    assert outline(*preset("markov")) == "counts of n-grams (Markov), order 2"


def test_every_preset_has_a_name_and_a_size() -> None:
    for name in PRESETS:
        kind, config = preset(name)
        told = describe(kind, config)
        assert told and "None" not in told and not told.startswith(f"{kind},"), told


def test_copying_is_told() -> None:
    kind, config = preset("lstm")
    assert "copying" not in describe(kind, config)
    assert "copying from the source" in describe(kind, replace(config, copy=True))
