"""Inference on images and series: labels with probabilities, captions, or forecasts."""

import math
from collections.abc import Sequence

import numpy as np
import torch

from dragoman.data.batch import VectorBatch
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import Example
from dragoman.data.vectors.config import SeriesInput
from dragoman.data.vectors.examples import LabelledVectors, window_batch
from dragoman.data.vectors.patches import standardised
from dragoman.data.vectors.stack import stacked_arrays
from dragoman.decode.predict import BATCH_TOKENS, Prediction
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import Job
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.models.task_heads import TaskNetwork
from dragoman.nn.student_t import student, student_quantile
from dragoman.shapes import Float, Tensor
from dragoman.text.tokenizer import Tokenizer


def labelled(scores: Float[Tensor, "R C"], task: TaskConfig) -> list[Prediction]:
    rows = scores.float().softmax(dim=-1).tolist()
    found = []
    for row in rows:
        best = int(np.argmax(row))
        found.append(Prediction(task.labels[best], dict(zip(task.labels, row, strict=True)), row[best]))
    return found


def forecast_of(
    scores: Float[Tensor, "R F"], batch: VectorBatch, series: SeriesInput
) -> Float[Tensor, "R H C Q"]:
    """The numbers to come, or their quantiles, in units of the training part's standard deviation."""
    if series.distribution == "quantiles":
        return batch.restored(scores)
    location, scale, freedom = student(batch.unscaled(scores))
    levels = [location + scale * student_quantile(level, freedom) for level in series.quantiles]
    return batch.scaled(torch.stack(levels, dim=-1))


class VectorPredictor:
    """Predicts labels or forecasts with the network of a run that reads images or series."""

    def __init__(self, model: TaskNetwork, task: TaskConfig, device: torch.device) -> None:
        self.model, self.task, self.device = model, task, device

    @torch.inference_mode()
    def predict(self, examples: Sequence[Example], batch_tokens: int = BATCH_TOKENS) -> list[Prediction]:
        """The label of each example, in order."""
        vectors = LabelledVectors(stacked_arrays(examples, self.task), examples, self.task)
        return [
            found
            for numbers in vectors.in_order(batch_tokens)
            for found in labelled(self.model(vectors.unchanged(numbers).to(self.device)), self.task)
        ]

    @torch.inference_mode()
    def forecast(self, values: np.ndarray, origin: str) -> np.ndarray:
        """Forecast the steps after a series (N C), in the units of the data. The result is H C Q, with one Q
        if there are no quantiles."""
        series = self.task.vectors
        assert isinstance(series, SeriesInput), "forecasts are made from series"
        if len(values) < series.window:
            raise UserError(
                f"{origin}: a forecast needs the last {series.window} steps, and there are {len(values):,}"
            )
        past = standardised(values[-series.window :], series)  # L C
        for channel in np.flatnonzero(np.isnan(past).all(axis=0)).tolist():
            name = series.columns[channel] if series.columns else str(channel + 1)
            raise UserError(f"{origin}: the last {series.window} steps of column '{name}' have no number")
        rows = past[None] if series.row_channels > 1 else past.T[:, :, None]
        future = np.full((len(rows), series.horizon, rows.shape[2]), np.nan, dtype=np.float32)
        batch = window_batch(rows, future, series)
        batch = batch.to(self.device)
        said = forecast_of(self.model(batch), batch, series).cpu().numpy()  # R H c Q
        together = said[0] if series.row_channels > 1 else said[:, :, 0].transpose(1, 0, 2)
        return together * np.array(series.std)[:, None] + np.array(series.mean)[:, None]


class Captioner:
    """Generates captions of images with the model of a run and its search."""

    def __init__(
        self,
        model: EncoderDecoder,
        tokenizer: Tokenizer,
        task: TaskConfig,
        search: SearchConfig,
        device: torch.device,
    ) -> None:
        self.translator = Translator(model, tokenizer, tokenizer, search, device)
        self.model, self.task = model, task

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """The caption of each example, in order. The confidence is the probability of the caption."""
        images = LabelledVectors(stacked_arrays(examples, self.task), examples, self.task)
        found = self.captions(images, np.arange(len(images)))
        return [Prediction(best.text, confidence=math.exp(best.log_prob)) for best in found]

    def captions(self, images: LabelledVectors, numbers: np.ndarray) -> list[Hypothesis]:
        """The best caption of each image."""
        jobs = [Job(vectors) for vectors in images.unchanged(numbers).vectors.numpy()]
        return [best for best, *_ in self.translator.search_jobs(jobs, self.translator.search)]
