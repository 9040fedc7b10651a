"""Weights and words as a browser gets them: small, and with all it takes to merge pieces into words."""

import base64
from collections.abc import Collection
from typing import Any

import numpy as np

from dragoman.probe.inside import Inside, Seen
from dragoman.shapes import Float, Tensor

MOST_WEIGHTS = 700_000
"""Largest number of weights in one answer: 0.93 MB as text. Beyond it, one kind of attention is sent at a
time."""


def packed(weights: Float[Tensor, "H Q M"]) -> str:
    """One byte per weight, in 255 steps from 0 to 1: exact to 0.002, and 0 stays 0."""
    return base64.b64encode((weights * 255).round().byte().numpy().tobytes()).decode()


def attentions_of(seen: Inside, kind: str | None, maskable: Collection[str]) -> list[dict[str, Any]]:
    """All of them, with their weights if all have room, else with those of one kind. `maskable` are those
    whose heads can be switched off."""
    everything = sum(each.weights.numel() for each in seen.attentions) <= MOST_WEIGHTS
    shown = kind or ("cross" if seen.of("cross") else next((each.kind for each in seen.attentions), None))
    return [
        {
            "module": each.module,
            "kind": each.kind,
            "layer": each.layer,
            "heads": len(each.weights),
            "maskable": each.module in maskable,
            "weights": packed(each.weights) if everything or each.kind == shown else None,
        }
        for each in seen.attentions
    ]


def number(value: float) -> float | None:
    """Four digits behind the point; JSON has no −∞."""
    return round(float(value), 4) if np.isfinite(value) else None


def numbers(values: np.ndarray) -> list[Any]:
    """Pack arrays of any shape."""
    if values.ndim == 1:
        return [number(value) for value in values.tolist()]
    return [numbers(row) for row in values]


def most_seen(seen: Inside, module: str | None) -> Seen | None:
    """The attention to show at first: the one that aligns best, else any."""
    return seen.named(module) if module is not None else next(iter(seen.attentions), None)
