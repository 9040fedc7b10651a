"""Baselines of forecasts by hand, and errors in the units of the literature."""

import numpy as np
import torch

from dragoman.data.batch import VectorBatch
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import Example
from dragoman.data.vectors.config import SeriesInput
from dragoman.data.vectors.examples import Windows
from dragoman.evaluate.forecasts import (
    baselines_for,
    by_channel,
    fit_linear,
    linear,
    naive,
    report,
    seasonal_naive,
)
from dragoman.learning.labels import forecast_loss
from dragoman.learning.vector_plan import season_of


def test_naive_and_seasonal_naive() -> None:
    past = np.array([[1.0, 2, 3, 4], [5, 6, 7, np.nan]])
    assert naive(past, 2).tolist() == [[4, 4], [7, 7]]
    assert seasonal_naive(past, 2, 5).tolist() == [[3, 4, 3, 4, 3], [7, 7, 7, 7, 7]]
    both = by_channel(lambda rows: naive(rows, 2), np.stack([past[0], past[0] * 10], axis=1)[None])
    assert both.tolist() == [[[4, 40], [4, 40]]]


def test_the_linear_baseline_is_least_squares() -> None:
    """Against NumPy's solver on the same windows; and a series that follows a linear rule is foretold."""
    rng = np.random.default_rng(1)
    train = rng.normal(size=(80, 2))
    weights = fit_linear(train, 6, 3)
    whole = np.lib.stride_tricks.sliding_window_view(train, 9, axis=0).reshape(-1, 9)
    mean = whole[:, :6].mean(axis=1, keepdims=True)
    expected = np.linalg.lstsq(whole[:, :6] - mean, whole[:, 6:] - mean, rcond=None)[0]
    said = (whole[:, :6] - mean) @ expected + mean
    np.testing.assert_allclose(linear(whole[:, :6], weights), said, atol=1e-3)
    steps = np.arange(200.0)
    waves = np.stack([np.sin(steps / 3), 2 + np.cos(steps / 3)], axis=1)
    weights = fit_linear(waves[:150], 24, 5)
    np.testing.assert_allclose(linear(waves[160:184].T, weights), waves[184:189].T, atol=1e-2)


def test_a_season_is_found() -> None:
    steps = np.arange(400)
    rng = np.random.default_rng(2)
    daily = np.sin(2 * np.pi * steps / 24)[:, None] + 0.1 * rng.normal(size=(400, 1))
    assert season_of(daily, 100) in (24, 48, 72, 96)
    assert season_of(np.cumsum(np.ones((100, 1)), axis=0), 40) == 1  # it only grows


def test_errors_are_means_over_what_is_known() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(30, 2)).astype(np.float32)
    values[20, 1] = np.nan
    series = SeriesInput(8, 2, 2, 4, ("a", "b"), mean=(0.0, 0.0), std=(1.0, 1.0), quantiles=(0.1, 0.5, 0.9))
    windows = Windows(values, [Example((), None, "")] * 19, TaskConfig("forecast", series=series))
    says = {0.1: -9.0, 0.5: 0.25, 0.9: 9.0}

    def predict(numbers: np.ndarray) -> np.ndarray:
        return np.tile(np.array(list(says.values())), (len(numbers), 4, 1, 1))

    found = report(predict, windows, baselines_for(windows.task, values[:15]), batch_tokens=50)
    assert found.windows == 19
    assert [row.name for row in found.rows] == ["model", "naive", "linear"]
    targets = np.concatenate([windows.cut(np.array([n]))[1].ravel() for n in range(len(windows))])
    missed = targets[~np.isnan(targets)] - 0.25
    np.testing.assert_allclose(found.rows[0].mse, np.square(missed).mean(), rtol=1e-6)
    np.testing.assert_allclose(found.rows[0].mae, np.abs(missed).mean(), rtol=1e-6)
    assert found.coverage[0.1] == 0
    assert found.coverage[0.9] == 1


def test_squares_and_the_pinball_loss_by_hand() -> None:
    said = torch.tensor([[[[1.0, 2.0, 4.0]], [[0.0, 0.0, 0.0]]]])  # 1 2 1 3
    one = torch.ones(1, 1, 1)
    batch = VectorBatch(
        torch.zeros(1, 1, 1), torch.ones(1, 2, dtype=torch.bool), torch.tensor([[[3.0], [7.0]]]), 1,
        one * 0, one, torch.tensor([[[True], [False]]]),
    )  # fmt: skip
    expected = (0.1 * 2 + 0.5 * 1 + 0.1 * 1) / 3  # below by 2 and by 1, above by 1; the second is missing
    torch.testing.assert_close(forecast_loss(said, batch, (0.1, 0.5, 0.9)), torch.tensor(expected))
    torch.testing.assert_close(forecast_loss(said[..., 1:2], batch, ()), torch.tensor(1.0))
