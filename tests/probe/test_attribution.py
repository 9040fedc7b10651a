"""Gradients against differences, and the completeness of integrated gradients, for every family."""

import numpy as np
import pytest
import torch

from battery.models import make
from dragoman.data.batch import collate
from dragoman.decode.search.scorer import Scorer
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.probe.attribution import attribute, mean_by_place

SRC, TGT = [5, 9, 4], [8, 3]
FAMILIES = ["transformer-pre", "lstm-bahdanau", "convs2s", "gru+transformer"]


def scores_with(model: EncoderDecoder, half: str, change: torch.Tensor) -> np.ndarray:
    """log p of each target piece where one half's embeddings are other by `change`."""
    embedding = getattr(model, half).embedding
    hook = embedding.register_forward_hook(lambda _module, _inputs, out: out + change)
    with torch.no_grad():
        found = Scorer([model]).forced(collate([(SRC, TGT)]))[0][0].numpy()
    hook.remove()
    return found


@pytest.mark.parametrize("name", FAMILIES)
def test_gradient_times_input_is_the_slope_along_each_embedding(name: str) -> None:
    model = make(name)
    found = attribute(model, SRC, TGT, "gradient_x_input")
    for half, ids, columns in (("encoder", [*SRC, 2], found.source), ("decoder", [1, *TGT], found.target)):
        with torch.no_grad():
            vectors = getattr(model, half).embedding(torch.tensor([ids]))
        for place in range(len(ids)):
            step = torch.zeros_like(vectors)
            step[0, place] = 1e-5 * vectors[0, place]
            slope = (scores_with(model, half, step) - scores_with(model, half, -step)) / 2e-5
            assert columns[:, place] == pytest.approx(slope, abs=1e-6)
    assert (np.triu(found.target, 1) == 0).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_integrated_gradients_are_complete(name: str) -> None:
    model = make(name)
    found = attribute(model, SRC, TGT, steps=24)
    sums = found.source.sum(axis=1) + found.target.sum(axis=1)
    kinks = 0.1 if name == "gru+transformer" else 1e-4  # the only one with ReLU
    assert sums == pytest.approx(found.token_scores - found.baseline, abs=kinks)
    assert found.gap == pytest.approx(np.abs(sums - found.token_scores + found.baseline).max())
    with torch.no_grad():
        scores = Scorer([model]).forced(collate([(SRC, TGT)]))[0][0]
    assert found.token_scores == pytest.approx(scores.numpy(), abs=1e-9)


def test_the_length_of_gradients() -> None:
    model = make("transformer-pre")
    found = attribute(model, SRC, TGT, "gradient")
    assert (found.source > 0).all()
    generator = torch.Generator().manual_seed(0)
    step = torch.zeros(1, 4, 16, dtype=torch.float64)
    slopes = []
    for _ in range(15):  # no direction is steeper than the gradient
        step[0, 1] = torch.nn.functional.normalize(
            torch.randn(16, dtype=torch.float64, generator=generator), dim=0
        )
        change = 1e-5 * step
        slopes.append(scores_with(model, "encoder", change) - scores_with(model, "encoder", -change))
    steepest = np.abs(slopes).max(axis=0) / 2e-5
    assert (steepest <= found.source[:, 1] + 1e-6).all() and (steepest > 0.1 * found.source[:, 1]).all()


def test_what_cannot_be_attributed() -> None:
    with pytest.raises(UserError, match="no embeddings"):
        attribute(make("markov"), SRC, TGT)
    with pytest.raises(UserError, match="steps: expected at least 1, found 0"):
        attribute(make("transformer"), SRC, TGT, steps=0)


def test_the_mean_over_pairs_is_by_hand_where_every_piece_is_a_part() -> None:
    model = make("transformer-pre")
    pairs = [([5, 9], [8, 3]), ([4, 7], [6, 6])]
    by_hand = np.zeros((2, 2))
    for src, tgt in pairs:
        norms = attribute(model, src, tgt, "gradient").source[:2, :2]
        by_hand += norms / norms.sum(axis=1, keepdims=True) / 2
    assert mean_by_place(model, pairs, parts=2) == pytest.approx(by_hand)


def test_pieces_are_divided_among_parts_and_rows_sum_to_one() -> None:
    model = make("lstm-bahdanau")
    found = mean_by_place(model, [(SRC, TGT)], parts=2)  # the middle one of three pieces is in both parts
    norms = attribute(model, SRC, TGT, "gradient").source[:2, :3]
    shares = norms / norms.sum(axis=1, keepdims=True)
    assert found[:, 0] == pytest.approx(shares[:, 0] + shares[:, 1] / 2)
    assert found.sum(axis=1) == pytest.approx(1.0)
