"""Calibrate the confidence of a run on its validation set, keep it in the run, and measure it."""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.config import from_dict, to_dict
from dragoman.decode.confidence import Calibration, features
from dragoman.decode.translator.translator import SentenceProgress, Translator
from dragoman.errors import UserError
from dragoman.evaluate.labels import pearson, spearman
from dragoman.evaluate.metrics import sentence_chrf
from dragoman.evaluate.tune import Openings, validation_openings, validation_pairs
from dragoman.files import read_regular, replace_file
from dragoman.runs.directory import Run
from dragoman.text.context import sentence_of

CONFIDENCE = "confidence.json"
SENTENCES = 1000
"""Number of validation sentences to translate."""
_LARGEST, _SEAL = 1 << 20, "seal"
_BINS = 10


def calibrate(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    openings: Openings | None = None,
    progress: SentenceProgress | None = None,
) -> Calibration:
    """Fit confidences to the translations of a validation set."""
    ask = partial(Translator.hypotheses, progress=progress)
    found = translator.by_opening(sources, openings or [()] * len(sources), ask)
    rows = [features(sentence_of(source), best) for source, (best, *_) in zip(sources, found, strict=True)]
    texts = [best.text for best, *_ in found]
    return Calibration.fitted(rows, list(map(sentence_chrf, texts, references)))


def calibration_of(
    run: Run, checkpoint: str = "best", device: str = "auto", progress: SentenceProgress | None = None
) -> Calibration:
    """The calibration of a checkpoint: read from the run, or computed on first use and stored there."""
    stored = stored_calibration(run, checkpoint)
    if stored is not None:
        return stored
    prepared = run.prepared()
    if not len(prepared.valid):
        raise UserError(f"{run.directory}: confidence is calibrated on a validation set, and there is none")
    sources, references = validation_pairs(prepared, SENTENCES)
    translator = run.translator(checkpoint, device, undirected=True)
    found = calibrate(translator, sources, references, validation_openings(prepared, SENTENCES), progress)
    with suppress(OSError):  # a read-only run can be used too
        write_calibration(run.directory / CONFIDENCE, _name(run, checkpoint), found)
    return found


def write_calibration(path: Path, checkpoint: str, calibration: Calibration) -> None:
    data = {"checkpoint": checkpoint, "calibration": to_dict(calibration)}
    replace_file(path, json.dumps(data | {_SEAL: _seal_of(data)}, indent=1).encode())


def _seal_of(data: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()


def stored_calibration(run: Run, checkpoint: str = "best") -> Calibration | None:
    """The stored calibration of a checkpoint, if there is one."""
    return read_calibration(run.directory / CONFIDENCE, _name(run, checkpoint))


def _name(run: Run, checkpoint: str) -> str:
    named = {"best": (run.best or {}).get("name"), "last": run.last}
    return str(named.get(checkpoint, checkpoint))


def read_calibration(path: Path, checkpoint: str) -> Calibration | None:
    """Read the calibration stored for this checkpoint; None if there is none."""
    try:
        data = json.loads(read_regular(path, _LARGEST))
        own, stored = data["checkpoint"], data["calibration"]
        if data.pop(_SEAL) != _seal_of(data):
            raise ValueError(_SEAL)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise UserError(f"{path}: damaged; remove it, and it is computed again") from None
    if own != checkpoint:
        return None
    try:
        return from_dict(Calibration, stored, str(path))
    except UserError as error:
        raise UserError(f"{error}; remove it, and it is computed again") from None


@dataclass(frozen=True)
class Measured:
    """How well confidences separate good translations from bad ones."""

    sentences: int
    pearson: float
    """Correlation with chrF."""
    spearman: float
    auc_worst_tenth: float
    """Probability that a translation of the worst tenth has a lower confidence than another one."""
    calibration_error: float
    """The mean distance between confidence and observed share over the bins, by their sizes."""
    expected: tuple[float, ...]
    """Reliability, by confidence in ten bins: the mean confidence of each …"""
    observed: tuple[float, ...]
    """… and the share that is not below the threshold. Empty bins are left out."""


def measure(
    confidences: Sequence[float], scores: Sequence[float], threshold: float, worst: float = 0.1
) -> Measured:
    """`scores` are chrF of the same translations; `threshold` is that of the calibration."""
    sure, quality = np.asarray(confidences, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    bad = quality <= np.quantile(quality, worst)
    expected, observed, sizes = [], [], []
    bins = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    for number in range(_BINS):
        own = bins == number
        if own.any():
            expected.append(float(sure[own].mean()))
            observed.append(float((quality[own] > threshold).mean()))
            sizes.append(int(own.sum()))
    return Measured(
        len(sure),
        pearson(sure.tolist(), quality.tolist()),
        spearman(sure.tolist(), quality.tolist()),
        auc(sure, bad),
        float(np.average(np.abs(np.subtract(expected, observed)), weights=sizes)),
        tuple(expected),
        tuple(observed),
    )


def auc(sure: np.ndarray, bad: np.ndarray) -> float:
    """The probability that a bad translation has the lower confidence; ties count half."""
    if bad.all() or not bad.any():
        return 0.5
    order = np.sort(sure[~bad])
    lower = np.searchsorted(order, sure[bad], side="left")
    higher = np.searchsorted(order, sure[bad], side="right")
    return float(1 - ((lower + higher) / 2).mean() / len(order))
