"""Positions as tables and squares: the textbook's numbers, and each kind against its definition."""

import math

import numpy as np
import pytest
import torch

from battery.models import CASES, make
from dragoman.errors import UserError
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.probe.positions import positions_of


def test_the_textbooks_numbers() -> None:
    config = TransformerConfig(num_layers=1, model_dim=4, num_heads=1, ff_dim=4)
    found = positions_of(build_model("transformer", config, Vocab(9, 9, shared=True)), 5)
    assert found.kind == "sinusoidal"
    assert found.table[1].tolist() == pytest.approx([0.8415, 0.5403, 0.0100, 0.99995], abs=5e-5)
    assert found.square.diagonal().tolist() == pytest.approx([2.0] * 5, abs=1e-6)
    assert found.square[0, 1].item() == pytest.approx(1.5403, abs=5e-5)


def test_learned_vectors_are_those_of_the_table() -> None:
    model = make("transformer-learned")
    found = positions_of(model, 8)
    weight = model.encoder.positions.weight.detach()
    assert torch.equal(found.table[:6], weight) and torch.equal(found.table[7], weight[5])
    assert found.square.numpy() == pytest.approx(found.table.numpy() @ found.table.numpy().T)
    assert positions_of(make("convs2s"), 4).kind == "learned"


@pytest.mark.parametrize("half", ["encoder", "decoder"])
def test_the_bias_of_t5_by_distance(half: str) -> None:
    model = make("transformer-t5")
    found = positions_of(model, 7, half)
    with torch.no_grad():
        bias = getattr(model, half).relations(7, 7, like=model.encoder.embedding.weight).bias[0]
    for row, distance in enumerate(found.rows):
        i, j = (0, int(distance)) if int(distance) >= 0 else (-int(distance), 0)
        assert found.table[row].tolist() == bias[:, i, j].tolist()
    assert found.square.numpy() == pytest.approx(bias.mean(dim=0).numpy())


def test_rotary_products_depend_on_distance_alone() -> None:
    found = positions_of(make("transformer-rotary"), 9)
    rates = [10000 ** (-2 * pair / 4) for pair in range(2)]
    by_hand = [[sum(2 * math.cos((j - i) * rate) for rate in rates) for j in range(9)] for i in range(9)]
    assert found.square.numpy() == pytest.approx(np.array(by_hand), abs=1e-6)
    assert found.table[3, :2].tolist() == pytest.approx([math.cos(3 * rate) for rate in rates], abs=1e-6)


def test_shaws_vectors_by_distance() -> None:
    model = make("transformer-shaw")
    found, causal = positions_of(model), positions_of(model, half="decoder")
    assert found.rows == tuple(map(str, range(-4, 5))) and causal.rows == tuple(map(str, range(-4, 1)))
    assert torch.equal(found.table, model.encoder.layers[0].self_attention.distances.key.detach())


def test_models_without_positions_say_so() -> None:
    for name in ("transformer-none", "lstm-bahdanau", "markov"):
        with pytest.raises(UserError, match="positions: the encoder of this model has none"):
            positions_of(make(name))
    with pytest.raises(UserError, match="at least 2"):
        positions_of(make("transformer"), 1)
    kinds = {positions_of(make(name), 4).kind for name in CASES if name in ("transformer", "transformer-pre")}
    assert kinds == {"sinusoidal"}
