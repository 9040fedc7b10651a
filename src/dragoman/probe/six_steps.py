"""Self-attention in six steps for one token, with the model's own numbers (Vaswani et al. 2017, equation 1).

    1  q, k, v      vectors of the token and of all it may look at
    2  q · k        a score for each
    3  / √d_k       and, with relative positions, their share
    4  softmax      over what is visible; hidden cells get exactly 0
    5  weight × v
    6  sum

The textbook's example: scores 112 and 96 with d_k = 64 become 14 and 12, and those 0.88 and 0.12.
"""

import math
from dataclasses import dataclass

import numpy as np

from dragoman.errors import UserError
from dragoman.probe.vectors import AttentionVectors


@dataclass(frozen=True)
class SixSteps:
    query: np.ndarray
    """E"""
    keys: np.ndarray
    """M E"""
    values: np.ndarray
    """M W"""
    scores: np.ndarray
    scaled: np.ndarray
    """Before the softmax, −∞ where hidden."""
    weights: np.ndarray
    weighted: np.ndarray
    """M W"""
    summed: np.ndarray
    """W"""


def six_steps(
    query: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    scale: float | None = None,
    bias: np.ndarray | None = None,
    visible: np.ndarray | None = None,
) -> SixSteps:
    """In float64. `scale` is 1/√d_k unless it is given."""
    query, keys, values = (np.asarray(part, dtype=np.float64) for part in (query, keys, values))
    scores = keys @ query
    scaled = scores * (1 / math.sqrt(len(query)) if scale is None else scale)
    if bias is not None:
        scaled = scaled + bias
    if visible is not None:
        scaled = np.where(visible, scaled, -np.inf)
    powers = np.exp(scaled - scaled.max())
    weights = powers / powers.sum()
    weighted = weights[:, None] * values
    return SixSteps(query, keys, values, scores, scaled, weights, weighted, weighted.sum(axis=0))


def steps_of(vectors: AttentionVectors, head: int, position: int) -> SixSteps:
    """The six steps of one head of an attention, for the token at `position`."""
    heads, queries = vectors.query.shape[:2]
    for name, asked, there in (("head", head, heads), ("position", position, queries)):
        if not 0 <= asked < there:
            raise UserError(f"{name}: {asked} is not there; they are numbered from 0 to {there - 1}")
    values = vectors.value[head, position if vectors.value.size(1) > 1 else 0]
    bias = None if vectors.bias is None else vectors.bias[head, position].double().cpu().numpy()
    return six_steps(
        vectors.query[head, position].double().cpu().numpy(),
        vectors.key[head].double().cpu().numpy(),
        values.double().cpu().numpy(),
        vectors.scale,
        bias,
        vectors.visible[position].cpu().numpy(),
    )
