"""Forecast errors as the literature reports them, with naive, seasonal naive and linear baselines.

Errors are computed on the series standardised by the mean and standard deviation of its training part, per
channel. They are averaged over all windows, steps and channels.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from dragoman.data.labelled.config import TaskConfig
from dragoman.data.vectors.config import SeriesInput
from dragoman.data.vectors.examples import Windows
from dragoman.data.vectors.patches import standardised
from dragoman.decode.predict_vectors import forecast_of
from dragoman.models.task_heads import TaskNetwork

Baseline = Callable[[np.ndarray], np.ndarray]
"""A function from B L to B H, for one channel."""
_RIDGE = 1e-4
"""Ridge penalty relative to the mean square of the inputs, which makes the solution unique."""


@dataclass(frozen=True)
class Errors:
    name: str
    mse: float
    mae: float


@dataclass(frozen=True)
class ForecastReport:
    windows: int
    rows: tuple[Errors, ...]
    """The errors of the model, then of the baselines."""
    coverage: dict[float, float]
    """For each quantile, the share of values below it."""


class _Sums:
    def __init__(self) -> None:
        self.square = self.absolute = 0.0
        self.count = 0

    def add(self, said: np.ndarray, targets: np.ndarray) -> None:
        missed = (said - targets)[~np.isnan(targets)].astype(np.float64)
        self.square += float(np.square(missed).sum())
        self.absolute += float(np.abs(missed).sum())
        self.count += missed.size

    def errors(self, name: str) -> Errors:
        count = max(1, self.count)
        return Errors(name, self.square / count, self.absolute / count)


def report(
    predict: Callable[[np.ndarray], np.ndarray],
    windows: Windows,
    baselines: dict[str, Baseline],
    batch_tokens: int,
) -> ForecastReport:
    """Errors of the model and the baselines. `predict` returns R H C Q for the windows with the given
    indices."""
    series = windows.series
    sums = {name: _Sums() for name in ("model", *baselines)}
    below, known = np.zeros(len(series.quantiles)), 0
    for numbers in windows.in_order(batch_tokens):
        past, future = windows.cut(numbers)
        said = predict(numbers)
        sums["model"].add(said[..., series.median], future)
        for name, baseline in baselines.items():
            sums[name].add(by_channel(baseline, past), future)
        if series.quantiles:
            there = ~np.isnan(future)
            below += [(future < said[..., place])[there].sum() for place in range(len(below))]
            known += int(there.sum())
    coverage = dict(zip(series.quantiles, (below / max(1, known)).tolist(), strict=True))
    count = len(windows) // windows.turns
    return ForecastReport(count, tuple(own.errors(name) for name, own in sums.items()), coverage)


def by_channel(baseline: Baseline, past: np.ndarray) -> np.ndarray:
    """Apply a baseline to each channel: B L C to B H C."""
    rows, _, channels = past.shape
    said = baseline(past.transpose(0, 2, 1).reshape(rows * channels, -1))
    return said.reshape(rows, channels, -1).transpose(0, 2, 1)


def baselines_for(task: TaskConfig, train: np.ndarray | None) -> dict[str, Baseline]:
    """The baselines that are available. The linear one is fitted to the training part."""
    series = task.vectors
    assert isinstance(series, SeriesInput), "forecasts are made from series"
    found: dict[str, Baseline] = {"naive": lambda past: naive(past, series.horizon)}
    if 1 < series.season <= series.window:
        found["seasonal naive"] = lambda past: seasonal_naive(past, series.season, series.horizon)
    if train is not None:
        weights = fit_linear(train, series.window, series.horizon)
        found["linear"] = lambda past: linear_forecast(past, weights)
    return found


def after_series(
    baselines: Mapping[str, Baseline], values: np.ndarray, series: SeriesInput
) -> dict[str, np.ndarray]:
    """What each baseline says follows a series (N C), in the units of the data: H C."""
    past = standardised(values[-series.window :], series)[None]
    mean, std = np.array(series.mean), np.array(series.std)
    return {name: by_channel(baseline, past)[0] * std + mean for name, baseline in baselines.items()}


def naive(past: np.ndarray, horizon: int) -> np.ndarray:
    """Repeat the last known value."""
    places = np.where(np.isnan(past), 0, np.arange(past.shape[1])).max(axis=1)
    last = np.nan_to_num(past[np.arange(len(past)), places])
    return np.repeat(last[:, None], horizon, axis=1)


def seasonal_naive(past: np.ndarray, season: int, horizon: int) -> np.ndarray:
    """Repeat the last season."""
    last = past[:, -season:]
    filled = np.where(np.isnan(last), naive(past, season), last)
    return filled[:, np.arange(horizon) % season]


def fit_linear(train: np.ndarray, window: int, horizon: int) -> np.ndarray:
    """The weights (L H) of a least-squares fit from each window to the steps after it, both minus the
    window's mean, shared by all channels. DLinear and NLinear learn it by gradient descent (Zeng et al. 2023;
    Toner & Darlow 2024)."""
    square, product = np.zeros((window, window)), np.zeros((window, horizon))
    whole = np.lib.stride_tricks.sliding_window_view(train, window + horizon, axis=0)  # N C L+H
    for start in range(0, len(whole), 512):
        rows = whole[start : start + 512].reshape(-1, window + horizon).astype(np.float64)
        rows = rows[~np.isnan(rows[:, window:]).any(axis=1) & ~np.isinf(rows).any(axis=1)]
        past, mean = _centred(rows[:, :window])
        square += past.T @ past
        product += past.T @ (rows[:, window:] - mean)
    ridge = _RIDGE * max(np.trace(square) / window, 1e-12)
    return np.linalg.solve(square + ridge * np.eye(window), product)


def linear_forecast(past: np.ndarray, weights: np.ndarray) -> np.ndarray:
    centred, mean = _centred(past.astype(np.float64))
    return centred @ weights + mean


def _centred(past: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    known = ~np.isnan(past)
    mean = np.where(known, past, 0.0).sum(axis=1, keepdims=True) / np.maximum(
        known.sum(axis=1, keepdims=True), 1
    )
    return np.where(known, past - mean, 0.0), mean


def in_batches(
    model: TaskNetwork, windows: Windows, device: torch.device
) -> Callable[[np.ndarray], np.ndarray]:
    """A function that returns the model's forecasts of windows by index."""

    @torch.inference_mode()
    def predict(numbers: np.ndarray) -> np.ndarray:
        batch = windows.unchanged(numbers).to(device)
        return forecast_of(model(batch), batch, windows.series).cpu().numpy()

    return predict


def forecast_table(found: ForecastReport) -> Sequence[str]:
    """The lines of the printed table."""
    width = max(len(row.name) for row in found.rows)
    lines = [f"{'':{width}}  {'MSE':>7}  {'MAE':>7}"]
    lines += [f"{row.name:{width}}  {row.mse:7.4f}  {row.mae:7.4f}" for row in found.rows]
    lines += [f"below quantile {level:g}: {100 * share:.1f}%" for level, share in found.coverage.items()]
    return lines
