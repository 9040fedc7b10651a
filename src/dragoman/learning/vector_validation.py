"""Validation of tasks on images and series."""

from typing import Any

import torch

from dragoman.data.vectors.config import SeriesInput
from dragoman.data.vectors.examples import VectorExamples, Windows
from dragoman.decode.predict_vectors import forecast_of, labelled
from dragoman.learning.base import Validator
from dragoman.learning.labels import forecast_loss, label_loss
from dragoman.learning.task_validation import task_metrics
from dragoman.learning.validation import Validation
from dragoman.runs.config import RunConfig
from dragoman.runs.records import Sample


class VectorValidator(Validator):
    def __init__(self, config: RunConfig, examples: VectorExamples, device: torch.device) -> None:
        self.examples, self.device = examples, device
        self.batch_tokens, self.samples = config.train.batch_tokens, config.train.samples

    def __len__(self) -> int:
        return len(self.examples)

    @torch.inference_mode()
    def run(self, model: Any, autocast: torch.autocast) -> Validation:
        """Validate. The model is back in training mode afterwards."""
        model.eval()
        forecast = isinstance(self.examples, Windows)
        found = self._errors(model, autocast) if forecast else self._labels(model, autocast)
        model.train()
        return found

    def _labels(self, model: Any, autocast: torch.autocast) -> Validation:
        task, said, total = self.examples.task, [], 0.0
        for numbers in self.examples.in_order(self.batch_tokens):
            batch = self.examples.unchanged(numbers).to(self.device)
            with autocast:
                scores = model(batch)
            total += float(label_loss(scores, batch.targets, 0.0))
            said += labelled(scores, task)
        examples = self.examples.examples
        metrics = {"loss": total / len(examples)} | task_metrics(said, examples, task) | model.mixture()
        shown = list(zip(said, examples, strict=True))[: self.samples]
        return Validation(
            metrics, [Sample(own.texts[0], str(own.target), str(found.value)) for found, own in shown]
        )

    def _errors(self, model: Any, autocast: torch.autocast) -> Validation:
        series = self.examples.task.vectors
        assert isinstance(series, SeriesInput), "forecasts are made from series"
        loss = square = absolute = count = 0.0
        for numbers in self.examples.in_order(self.batch_tokens):
            batch = self.examples.unchanged(numbers).to(self.device)
            assert batch.known is not None, "these batches are of windows"
            with autocast:
                scores = model(batch)
            loss += float(forecast_loss(scores, batch, series))
            said = forecast_of(scores, batch, series)
            missed = (said[..., series.median] - batch.targets)[batch.known].double()
            square += float(missed.square().sum())
            absolute += float(missed.abs().sum())
            count += missed.numel()
        count = max(count, 1.0)
        return Validation({"loss": loss / count, "mse": square / count, "mae": absolute / count}, [])
