"""Rollout by hand on two layers; flow against every cut."""

from itertools import product

import numpy as np
import pytest
import torch

from battery.models import make
from dragoman.errors import UserError
from dragoman.probe.inside import Inside, Seen, look_inside
from dragoman.probe.rollout import encoder_flow, greatest_flow, rollout

ENCODER = [[[0.6, 0.4], [0.2, 0.8]], [[0.5, 0.5], [1.0, 0.0]]]


def inside(attentions: tuple[Seen, ...], src: int, tgt: int) -> Inside:
    src_names, names = tuple(map(str, range(src))), tuple(map(str, range(tgt)))
    return Inside((), (), src_names, names, names, (), (), attentions)


def seen(kind: str, layer: int, weights: list[list[float]]) -> Seen:
    return Seen(f"{kind}.{layer}", kind, layer, torch.tensor([weights, weights], dtype=torch.float64))


def test_two_layers_by_hand() -> None:
    layers = [seen("encoder", n + 1, weights) for n, weights in enumerate(ENCODER)]
    back, cross = seen("decoder", 1, [[1.0, 0.0], [0.4, 0.6]]), seen("cross", 1, [[0.9, 0.1], [0.3, 0.7]])
    found = rollout(inside((*layers, back, cross), 2, 2))
    # Ã₁ = [.8 .2; .1 .9], Ã₂ = [.75 .25; .5 .5]
    assert found.encoder == pytest.approx(np.array([[0.625, 0.375], [0.45, 0.55]]))
    # ½ A_cross E, since nothing of the source is there before
    assert found.source == pytest.approx(np.array([[0.30375, 0.19625], [0.25125, 0.24875]]))
    # ½ (½ A_self + ½ I)
    assert found.target == pytest.approx(np.array([[0.5, 0.0], [0.1, 0.4]]))


@pytest.mark.parametrize("name", ["transformer", "transformer-dk-dv", "transformer-rotary"])
def test_all_of_a_position_comes_from_somewhere(name: str) -> None:
    found = rollout(look_inside(make(name), [5, 9, 4], [8, 3]))
    assert found.encoder.sum(axis=1) == pytest.approx(np.ones(4))
    assert (found.source.sum(axis=1) + found.target.sum(axis=1)) == pytest.approx(np.ones(3))
    assert (np.triu(found.target, 1) == 0).all()


def smallest_cut(layers: np.ndarray, start: int, end: int) -> float:
    """Of all ways to part the nodes with `start` on one side and `end` on the other."""
    depth, size = layers.shape[:2]
    nodes = [(level, node) for level in range(depth + 1) for node in range(size)]
    free = [node for node in nodes if node not in ((depth, start), (0, end))]
    best = np.inf
    for sides in product((False, True), repeat=len(free)):
        above = {node for node, side in zip(free, sides, strict=True) if side} | {(depth, start)}
        cut = sum(
            layers[level, upper, lower]
            for level, upper, lower in product(range(depth), range(size), range(size))
            if (level + 1, upper) in above and (level, lower) not in above
        )
        best = min(best, cut)
    return best


def test_the_greatest_flow_is_the_smallest_cut() -> None:
    generator = np.random.default_rng(3)
    layers = generator.dirichlet(np.ones(3) * 0.6, size=(2, 3))
    for start, end in product(range(3), range(3)):
        assert greatest_flow(layers, start, end) == pytest.approx(smallest_cut(layers, start, end), abs=1e-9)


def test_a_flow_that_has_to_turn_back() -> None:
    """The widest path first takes what another one needs: only with its return is the flow whole."""
    layers = np.zeros((3, 2, 2))
    layers[2] = [[1.0, 1.0], [0.0, 0.0]]
    layers[1] = [[1.0, 1.0], [1.0, 0.0]]
    layers[0] = [[1.0, 0.0], [1.0, 0.0]]
    assert greatest_flow(layers, 0, 0) == 2.0


def test_flow_of_a_model_and_of_those_without_self_attention() -> None:
    found = encoder_flow(look_inside(make("transformer"), [5, 9, 4], [8]))
    assert found.shape == (4, 4)
    assert found.sum(axis=1) == pytest.approx(np.ones(4))
    for name, half in (("lstm-bahdanau", "encoder"), ("transformer-average", "decoder")):
        with pytest.raises(UserError, match=f"this {half} has none"):
            rollout(look_inside(make(name), [5, 9, 4], [8]))
