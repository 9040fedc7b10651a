"""Learning to classify images and series, and to forecast series."""

from typing import Any

import numpy as np
import torch

from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import Example
from dragoman.data.labelled.prepared import PreparedTask
from dragoman.data.vectors.config import SeriesInput
from dragoman.data.vectors.examples import LabelledVectors, VectorExamples, Windows
from dragoman.data.vectors.stack import window_starts
from dragoman.decode.predict_vectors import forecast_of, labelled
from dragoman.errors import UserError
from dragoman.learning.base import TRACKS, Examples, Validator
from dragoman.learning.labels import ForecastLoss, VectorLabels, forecast_loss, label_loss
from dragoman.learning.loss import Objective
from dragoman.learning.task import LabelledTask, task_of
from dragoman.learning.task_validation import task_metrics
from dragoman.learning.validation import Validation
from dragoman.models.abilities import Abilities
from dragoman.models.task_heads import HeadConfig
from dragoman.runs.config import RunConfig
from dragoman.runs.records import Sample


class VectorTask(LabelledTask):
    name = "vectors"

    def settle(self, config: RunConfig, abilities: Abilities) -> RunConfig:  # noqa: ARG002
        return config

    writes = False
    """Whether the task needs a model that generates text."""

    def check_lengths(self, task: TaskConfig, abilities: Abilities) -> None:
        vectors = task.vectors
        if self.writes != (task.kind == "caption"):
            other = "captions" if task.kind == "caption" else "vectors"
            raise UserError(f"objective.name: the task {task.kind} is learnt by {other}, found {self.name}")
        if not vectors.places or not vectors.mean:
            section = "series" if isinstance(vectors, SeriesInput) else "image"
            raise UserError(
                f"task.{section}: sizes and statistics are required; dragoman finetune finds them in the data"
            )
        if abilities.vectors is None or abilities.writes != self.writes:
            wanted = "mixed, with encoder: {kind: vit}" if self.writes else "vit"
            raise UserError(
                f"model.kind: the task {task.kind} needs a model that reads vectors; choose {wanted}"
            )
        if abilities.vectors != vectors.vector:
            raise UserError(
                f"model.input_dim: vectors of this task have {vectors.vector} numbers, found "
                f"{abilities.vectors}"
            )
        if abilities.max_length is not None and vectors.places > abilities.max_length:
            raise UserError(
                f"model.max_positions: this task has {vectors.places} vectors, found {abilities.max_length}; "
                "raise it"
            )

    def head(self, config: RunConfig) -> HeadConfig:
        task = task_of(config)
        outputs = len(task.labels)
        series = task.vectors
        if task.kind == "forecast" and isinstance(series, SeriesInput):
            outputs = series.horizon * series.row_channels * series.outputs
        return HeadConfig(
            task.kind, outputs, task.pooling, task.dropout, layers=task.layers, places=series.places
        )

    def examples(self, config: RunConfig, prepared: PreparedTask) -> Examples:
        task = task_of(config)
        if task.kind == "forecast":
            return Windows(prepared.arrays["train"], prepared.train, task)
        values = prepared.arrays["train"]
        return LabelledVectors(values, prepared.train, task, prepared.corpora, config.seed)

    def objective(self, config: RunConfig, model: Any, processes: int) -> Objective:  # noqa: ARG002
        task = task_of(config)
        if task.kind == "forecast":
            assert isinstance(task.vectors, SeriesInput), "forecasts are made from series"
            return ForecastLoss(task.vectors)
        return VectorLabels(config.objective.label_smoothing)

    def validator(
        self,
        config: RunConfig,
        prepared: PreparedTask,
        device: torch.device,
        tracks: int = TRACKS,  # noqa: ARG002
    ) -> Validator:
        task = task_of(config)
        return VectorValidator(config, vector_examples(prepared, task, "valid"), device)

    def notes(self, examples: Examples) -> list[str]:  # noqa: ARG002
        return []

    def plan_rows(self, config: RunConfig) -> list[tuple[str, str]]:
        task = task_of(config)
        rows = super().plan_rows(config)
        if task.image is not None:
            image = task.image
            colours = "grey" if image.channels == 1 else "in colours"
            size = f"{image.height} × {image.width} pixels, {colours}"
            return [*rows, ("images", f"{size}, as {image.places} patches of {image.patch} × {image.patch}")]
        series = task.vectors
        assert isinstance(series, SeriesInput), "images have been handled"
        told = f"{series.window} steps as {series.places} patches of {series.patch}"
        if task.kind == "forecast":
            told = f"{len(series.columns)} channels, {told}; {series.horizon} steps to say"
        return [*rows, ("series", told)]


def vector_examples(prepared: PreparedTask, task: TaskConfig, part: str) -> VectorExamples:
    """The validation or test part of a run, in order."""
    values = prepared.arrays[part]
    if task.kind != "forecast":
        return LabelledVectors(values, prepared.valid, task)
    return windows_of(values, task)


def windows_of(values: np.ndarray, task: TaskConfig) -> Windows:
    """All windows of the joined series, without origins."""
    series = task.vectors
    assert isinstance(series, SeriesInput), "forecasts are made from series"
    count = len(window_starts(values, series.window + series.horizon))
    return Windows(values, [Example((), None, "")] * count, task)


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
