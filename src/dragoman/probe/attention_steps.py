"""Self-attention in six steps for one token, with the model's own numbers (Vaswani et al. 2017, equation 1).

    1  q, k, v      vectors of the token and of all it may look at
    2  q · k        a score for each
    3  / √d_k       and, with relative positions, their share
    4  softmax      over what is visible; hidden cells get exactly 0
    5  weight × v
    6  sum

The textbook's example: scores 112 and 96 with d_k = 64 become 14 and 12, and those 0.88 and 0.12.

How a classic score comes about, for one query: the steps that `nn/scores.py` takes, with its numbers.

    query q ─ [ projected ] ─┐
    keys ────────────────── match ─▶ a score for each memory position
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from dragoman.data.batch import Device
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.nn.scores import (
    AdditiveScore,
    BasicScore,
    ConcatScore,
    CosineScore,
    DotScore,
    GeneralScore,
    LocationScore,
    ScaledDotScore,
)
from dragoman.probe.hooks import read_pair, standing
from dragoman.probe.vectors import AttentionVectors
from dragoman.shapes import Float, Tensor


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
    """Compute the steps in float64. `scale` defaults to 1/√d_k."""
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


FORMULAS: dict[type, str] = {
    BasicScore: "qᵀh",
    DotScore: "qᵀh",
    ScaledDotScore: "qᵀh / √d",
    GeneralScore: "qᵀ W h",
    ConcatScore: "vᵀ tanh(W [q; h])",
    AdditiveScore: "vᵀ tanh(W₁ q + W₂ h)",
    CosineScore: "β cos(q, h)",
    LocationScore: "W q: only the place counts",
}


@dataclass(frozen=True)
class ScoreSteps:
    formula: str
    query: np.ndarray
    """D: the state that asks."""
    asked: np.ndarray | None
    """A: the query as it is compared, where it is projected first (additive, concat)."""
    keys: np.ndarray
    """M E: what each memory position is compared by; E = 0 for location."""
    inner: np.ndarray | None
    """M A: tanh of the sum of both (additive, concat)."""
    scores: np.ndarray
    """M"""


def score_steps(
    model: EncoderDecoder,
    src_ids: Sequence[int],
    tgt_ids: Sequence[int],
    module: str,
    position: int,
    device: Device = None,
) -> ScoreSteps:
    """The steps of one scored attention (`module` is its name) at one decoder position of a given pair."""
    score = dict(model.named_modules())[f"{module}.score"]
    calls: list[tuple[Tensor, Tensor, Tensor]] = []
    with standing([score.register_forward_hook(partial(_keep, calls))]):
        read_pair(model, src_ids, tgt_ids, device)
    query = torch.cat([each[0] for each in calls], dim=1)[0, position]
    scores = torch.cat([each[2] for each in calls], dim=1)[0, position]
    keys = calls[0][1][0]
    asked = inner = None
    with torch.no_grad():
        if isinstance(score, AdditiveScore):
            asked = score.query(query)
        elif isinstance(score, ConcatScore):
            asked = nn.functional.linear(query, score.joint.weight[:, : score.query_dim])
        if asked is not None:
            inner = torch.tanh(asked[None] + keys)
    return ScoreSteps(
        FORMULAS[type(score)],
        _array(query),
        None if asked is None else _array(asked),
        _array(keys),
        None if inner is None else _array(inner),
        _array(scores),
    )


def _keep(
    calls: list[tuple[Tensor, Tensor, Tensor]], _module: nn.Module, inputs: tuple[Any, ...], output: Tensor
) -> None:
    calls.append((inputs[0], inputs[1], output))


def _array(values: Float[Tensor, "..."]) -> np.ndarray:
    return values.detach().double().cpu().numpy()
