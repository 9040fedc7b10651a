"""How a classic score comes about, for one query: the steps that `nn/scores.py` takes, with its numbers.

query q ─ [ projected ] ─┐
keys ────────────────── match ─▶ a score for each memory position
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from dragoman.data.batch import Device
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
from dragoman.shapes import Float, Tensor

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
    """Of one scored attention (`module` is its name) at one position of the decoder, in a forced pair."""
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
