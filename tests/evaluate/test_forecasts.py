"""Baselines of forecasts by hand, and errors in the units of the literature."""

import numpy as np
import torch
from torch.distributions import StudentT

from dragoman.data.batch import VectorBatch
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import Example
from dragoman.data.vectors.config import SeriesInput
from dragoman.data.vectors.examples import Windows
from dragoman.decode.predict_vectors import forecast_of
from dragoman.evaluate.forecasts import (
    after_series,
    baselines_for,
    by_channel,
    fit_linear,
    linear_forecast,
    naive,
    report,
    seasonal_naive,
)
from dragoman.learning.labels import forecast_loss
from dragoman.learning.vector_plan import season_of
from dragoman.nn.student_t import student


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
    np.testing.assert_allclose(linear_forecast(whole[:, :6], weights), said, atol=1e-3)
    steps = np.arange(200.0)
    waves = np.stack([np.sin(steps / 3), 2 + np.cos(steps / 3)], axis=1)
    weights = fit_linear(waves[:150], 24, 5)
    np.testing.assert_allclose(linear_forecast(waves[160:184].T, weights), waves[184:189].T, atol=1e-2)


def test_baselines_follow_a_series_in_the_units_of_its_file() -> None:
    """They work on standardised values; a naive forecast is the last value of the file itself."""
    series = SeriesInput(window=4, horizon=3, season=2, channels=2, mean=(5.0, -1.0), std=(2.0, 10.0))
    task = TaskConfig(kind="forecast", series=series)
    values = np.stack([np.arange(9.0), 10 - 3 * np.arange(9.0)], axis=1)
    train = (values - [5.0, -1.0]) / [2.0, 10.0]
    found = after_series(baselines_for(task, train), values, series)
    np.testing.assert_allclose(found["naive"], [[8.0, -14.0]] * 3, rtol=1e-6)
    np.testing.assert_allclose(found["seasonal naive"], values[[7, 8, 7]], rtol=1e-6)
    np.testing.assert_allclose(found["linear"], [[9, -17], [10, -20], [11, -23]], rtol=1e-2)
    assert "linear" not in after_series(baselines_for(task, None), values, series)


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
    quantiles, squares = SeriesInput(quantiles=(0.1, 0.5, 0.9)), SeriesInput()
    torch.testing.assert_close(forecast_loss(said.flatten(1), batch, quantiles), torch.tensor(expected))
    torch.testing.assert_close(forecast_loss(said[..., 1:2].flatten(1), batch, squares), torch.tensor(1.0))


def test_a_distribution_of_student_in_units_of_the_window() -> None:
    """Against PyTorch's, moved and stretched as the window was; a value that is missing does not count."""
    torch.manual_seed(2)
    scores = torch.randn(2, 3 * 3 * 1)
    known = torch.ones(2, 3, 1, dtype=torch.bool)
    known[1, 2] = False
    batch = VectorBatch(
        torch.zeros(2, 1, 1), torch.ones(2, 2, dtype=torch.bool), torch.randn(2, 3, 1), 5,
        torch.tensor([[[2.0]], [[-1.0]]]), torch.tensor([[[3.0]], [[0.5]]]), known,
    )  # fmt: skip
    series = SeriesInput(distribution="student")
    assert series.quantiles == (0.1, 0.5, 0.9)
    assert series.outputs == 3
    location, scale, freedom = student(scores.view(2, 3, 1, 3))
    assert batch.scale is not None and batch.shift is not None
    own = StudentT(freedom, location * batch.scale + batch.shift, scale * batch.scale)
    expected = -own.log_prob(batch.targets)[known].sum()
    torch.testing.assert_close(forecast_loss(scores, batch, series), expected)
    said = forecast_of(scores, batch, series)
    torch.testing.assert_close(said[..., series.median], own.loc)
    draws = own.sample((20_000,))
    for place, level in enumerate(series.quantiles):
        share = (draws < said[..., place]).double().mean(dim=0)
        torch.testing.assert_close(share, torch.full_like(share, level), atol=0.02, rtol=0)
