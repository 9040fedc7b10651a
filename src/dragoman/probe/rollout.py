"""Attention through all layers: how much of each input reaches a position (Abnar & Zuidema 2020).

Heads are averaged, and the residual connection counts half: Ã = ½ A + ½ I.

    rollout   Ã_L ⋯ Ã_2 Ã_1                   equation 1: all paths, each the product of its weights
    flow      the greatest flow from a position of the last layer to an input, each weight being a capacity

A decoder layer looks back, then at the source; with E the rollout of the encoder:

    target ← ½ target + ½ A_self target        source ← ½ source + ½ A_self source
    target ← ½ target                          source ← ½ source + ½ A_cross E
"""

from dataclasses import dataclass

import numpy as np

from dragoman.errors import UserError
from dragoman.probe.inside import Inside, Seen


@dataclass(frozen=True)
class Rollout:
    """Rows of `encoder` sum to 1, and so do the rows of `source` and `target` together."""

    encoder: np.ndarray
    """S S: source positions after the last layer, source pieces."""
    source: np.ndarray
    """T S: target positions after the last layer, source pieces."""
    target: np.ndarray
    """T T: target positions after the last layer, target pieces that were read."""


def rollout(seen: Inside) -> Rollout:
    """Attention rollout; for models whose layers all have attention (Transformers)."""
    encoder, decoder, cross = _layers(seen)
    encoded = np.eye(len(seen.src))
    for layer in encoder:
        encoded = _half(layer) @ encoded
    target, source = np.eye(len(seen.read)), np.zeros((len(seen.read), len(seen.src)))
    for own, other in zip(decoder, cross, strict=True):
        target, source = _half(own) @ target, _half(own) @ source
        target, source = target / 2, source / 2 + _weights(other) @ encoded / 2
    return Rollout(encoded, source, target)


def encoder_flow(seen: Inside) -> np.ndarray:
    """S S: the greatest flow from each source position after the last layer to each source piece, as shares
    of its row. It takes a search for every cell: seconds for 20 pieces, and far more for 100."""
    graph = np.stack([_half(layer) for layer in _layers(seen)[0]])
    size = graph.shape[1]
    found = np.array([[greatest_flow(graph, start, end) for end in range(size)] for start in range(size)])
    return found / found.sum(axis=1, keepdims=True)


def greatest_flow(layers: np.ndarray, start: int, end: int) -> float:
    """Maximum flow from `start` above the last layer to `end` below the first; `layers` L Q M are the
    capacities.

    Ford & Fulkerson with the widest path first: each path takes the largest possible amount.
    """
    down, up = layers.astype(np.float64).copy(), np.zeros(layers.shape)  # what may still go, what came back
    total = 0.0
    while True:
        path, amount = _widest_path(down, up, start, end)
        if amount <= 1e-12:
            return total
        for layer, upper, lower, forward in path:
            sign = 1.0 if forward else -1.0
            down[layer, upper, lower] -= sign * amount
            up[layer, upper, lower] += sign * amount
        total += amount


Edge = tuple[int, int, int, bool]
"""Layer, node above it, node below it, and whether the flow goes down."""


def _widest_path(down: np.ndarray, up: np.ndarray, start: int, end: int) -> tuple[list[Edge], float]:
    """Dijkstra's algorithm with the narrowest edge of a path in the place of its length."""
    depth, size = down.shape[:2]
    width = np.zeros((depth + 1, size))  # level L is above the last layer, level 0 are the inputs
    width[depth, start] = np.inf
    before: dict[tuple[int, int], Edge] = {}
    done = np.zeros(width.shape, dtype=bool)
    while True:
        level, node = divmod(int(np.where(done, -1.0, width).argmax()), size)
        if done[level, node] or width[level, node] <= 0:
            return [], 0.0
        if (level, node) == (0, end):
            break
        done[level, node] = True
        if level:
            _widen(width, before, level - 1, down[level - 1, node], width[level, node], node, forward=True)
        if level < depth:
            _widen(width, before, level + 1, up[level, :, node], width[level, node], node, forward=False)
    path: list[Edge] = []
    place = (0, end)
    while place != (depth, start):
        edge = before[place]
        path.append(edge)
        layer, upper, lower, forward = edge
        place = (layer + 1, upper) if forward else (layer, lower)
    return path, float(width[0, end])


def _widen(
    width: np.ndarray,
    before: dict[tuple[int, int], Edge],
    level: int,
    room: np.ndarray,
    reached: float,
    node: int,
    forward: bool,
) -> None:
    """Nodes of a neighbouring level that a wider path leads to through `node`."""
    offered = np.minimum(room, reached)
    for other in np.flatnonzero(offered > width[level]).tolist():
        width[level, other] = offered[other]
        edge = (level, node, other, True) if forward else (level - 1, other, node, False)
        before[(level, other)] = edge


def _layers(seen: Inside) -> tuple[list[Seen], list[Seen], list[Seen]]:
    encoder, decoder, cross = (list(seen.of(kind)) for kind in ("encoder", "decoder", "cross"))
    if not encoder:
        raise UserError("rollout: follows self-attention from layer to layer, and this encoder has none")
    if len(decoder) != len(cross):
        raise UserError("rollout: follows self-attention from layer to layer, and this decoder has none")
    return encoder, decoder, cross


def _weights(layer: Seen) -> np.ndarray:
    return layer.mean.double().numpy()


def _half(layer: Seen) -> np.ndarray:
    weights = _weights(layer)
    return (weights + np.eye(len(weights))) / 2
