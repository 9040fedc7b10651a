"""How sure one can be of a translation: a probability, from what the model knew while it wrote.

The event is that a translation is not among the worst quarter of those of the validation set (by chrF
against the reference). A logistic regression from the scores of the tokens to that event is fitted on the
validation set, so the probabilities are calibrated there: of translations with confidence 0.9, nine in ten
were not among the worst quarter. They say nothing about texts of another kind.

It needs the scores of the tokens alone, so every engine has it. NumPy, no torch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.errors import UserError

FEATURES = ("mean", "least", "spread", "unsure", "length", "ratio", "cut")
"""Log-probability of a token in the mean and at least, its standard deviation, the share of tokens below 1/2,
the logarithms of the length and of its ratio to the source, and whether the search had to cut it off."""
WORST = 0.25
"""The share of validation translations that count as bad."""
_STEPS, _RIDGE = 50, 1.0
_LEAST = 40
"""Sentences that a calibration needs."""


def features(source: str, found: Hypothesis) -> list[float]:
    """The numbers of one translation, in the order of `FEATURES`."""
    scores = np.asarray(found.token_scores or (0.0,), dtype=np.float64)
    return [
        float(scores.mean()),
        float(scores.min()),
        float(scores.std()),
        float((scores < math.log(0.5)).mean()),
        math.log(len(scores)),
        math.log((len(found.text) + 1) / (len(source) + 1)),
        float(found.finish_reason != "stop"),
    ]


@dataclass(frozen=True)
class Calibration:
    """The fitted regression. A translation is bad below `threshold`, in chrF."""

    threshold: float
    bias: float
    weights: tuple[float, ...]
    centres: tuple[float, ...]
    scales: tuple[float, ...]
    sentences: int
    """Number of sentences of the validation set that it was fitted on."""

    def __post_init__(self) -> None:
        sizes = {len(row) for row in (self.weights, self.centres, self.scales)}
        numbers = (self.threshold, self.bias, *self.weights, *self.centres, *self.scales)
        if sizes != {len(FEATURES)} or not all(map(math.isfinite, numbers)) or min(self.scales) <= 0:
            raise UserError("calibration: damaged: its numbers do not belong together")

    @classmethod
    def fitted(cls, rows: Sequence[Sequence[float]], scores: Sequence[float]) -> "Calibration":
        """Fit a calibration to the features of validation translations and their scores against the
        references."""
        if len(rows) < _LEAST:
            raise UserError(f"confidence: needs {_LEAST} validation sentences, and there are {len(rows)}")
        found, threshold = np.asarray(rows, dtype=np.float64), float(np.quantile(scores, WORST))
        good = (np.asarray(scores) > threshold).astype(np.float64)
        if good.mean() < 1 - 2 * WORST:  # many have the same score: only those below it are bad
            good = (np.asarray(scores) >= threshold).astype(np.float64)
        centres, scales = found.mean(axis=0), np.maximum(found.std(axis=0), 1e-6)
        # The length ratio counts by its distance from the usual one.
        inputs = _inputs(found, centres, scales)
        weights = _regression(np.concatenate([np.ones((len(inputs), 1)), inputs], axis=1), good)
        return cls(
            threshold,
            float(weights[0]),
            tuple(weights[1:].tolist()),
            tuple(centres.tolist()),
            tuple(scales.tolist()),
            len(rows),
        )

    def confidence(self, source: str, found: Hypothesis) -> float:
        """The probability that a translation is not among the worst; 1 for an empty text."""
        return self.of_features(features(source, found)) if source.strip() else 1.0

    def of_features(self, row: Sequence[float]) -> float:
        """The confidence for the features of a translation."""
        inputs = _inputs(np.asarray([row]), np.asarray(self.centres), np.asarray(self.scales))
        return float(_sigmoid(self.bias + inputs @ np.asarray(self.weights))[0])


def _inputs(rows: np.ndarray, centres: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Standardised, within four standard deviations; too short is as suspicious as too long."""
    inputs = np.clip((rows - centres) / scales, -4.0, 4.0)
    ratio = FEATURES.index("ratio")
    inputs[:, ratio] = np.abs(inputs[:, ratio])
    return inputs


def _regression(inputs: np.ndarray, good: np.ndarray) -> np.ndarray:
    """Logistic regression with a ridge, by Newton's method."""
    weights = np.zeros(inputs.shape[1])
    penalty = np.full(inputs.shape[1], _RIDGE)
    penalty[0] = 0.1  # finite where nothing is bad
    for _ in range(_STEPS):
        probable = _sigmoid(inputs @ weights)
        gradient = inputs.T @ (good - probable) - penalty * weights
        curvature = (inputs * (probable * (1 - probable))[:, None]).T @ inputs + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        weights += step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(values, -30, 30)))
