"""What the views *Picture* and *Forecast* ask for: examples of the validation part of a run on images or
series, what the model says of them, and what it looked at."""

import base64
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn

from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import VectorExample
from dragoman.data.labelled.prepared import PreparedTask
from dragoman.data.vectors.config import SeriesInput
from dragoman.data.vectors.examples import LabelledVectors, Windows
from dragoman.decode.predict_vectors import VectorPredictor, labelled
from dragoman.errors import UserError
from dragoman.evaluate.forecasts import Baseline, baselines_for, by_channel, in_batches
from dragoman.learning.vectors import windows_of
from dragoman.probe.patches import PatchReader
from dragoman.runs.directory import Run
from dragoman.runs.opening import open_vector_predictor
from dragoman.studio.packing import numbers

_MOST_CHANNELS = 24


@dataclass(frozen=True)
class OpenVectors:
    """A run on images or series at one of its checkpoints."""

    run: Run
    opened: PatchReader | VectorPredictor
    checkpoint: str

    @property
    def task(self) -> TaskConfig:
        return self.opened.task

    @property
    def model(self) -> nn.Module:
        return self.opened.model

    @property
    def sees(self) -> str:
        return "image" if self.task.image is not None else "series"

    @cached_property
    def data(self) -> PreparedTask:
        found = self.run.corpus()
        assert isinstance(found, PreparedTask), "a task has labelled data"
        return found

    @cached_property
    def windows(self) -> Windows:
        return windows_of(self.data.arrays["valid"], self.task)

    @cached_property
    def baselines(self) -> dict[str, Baseline]:
        return baselines_for(self.task, self.data.arrays["train"])


def open_vectors(run: Run, at: str, device: str) -> OpenVectors:
    task = run.config.task
    images = task is not None and task.image is not None
    return OpenVectors(
        run, PatchReader(run, at, device) if images else open_vector_predictor(run, at, device), at
    )


def _example(of: OpenVectors, index: int) -> VectorExample:
    valid = of.data.valid
    _check(index, len(valid))
    return VectorExample(
        valid[index].texts, valid[index].target, valid[index].origin, values=of.data.arrays["valid"][index]
    )


def _check(index: int, count: int) -> None:
    if index >= count:
        raise UserError(f"example: {index} is not there; they are numbered from 0 to {count - 1}")


def picture(of: OpenVectors, index: int, layer: int | None, head: int | None) -> dict[str, Any]:
    """An image of the validation set, what was said of it, and the weight of every patch."""
    if not isinstance(of.opened, PatchReader):
        raise UserError(f"{of.run.directory.name}: this run reads series, not images")
    example = _example(of, index)
    found = of.opened.look(example, layer, head)
    height, width = found.image.shape[:2]
    pixels = np.broadcast_to(found.image, (height, width, 3)).astype(np.uint8)
    return {
        "all": len(of.data.valid),
        "name": " ".join(example.texts),
        "expected": str(example.target),
        "height": height,
        "width": width,
        "pixels": base64.b64encode(pixels.tobytes()).decode(),
        "said": [
            {"piece": piece, "score": float(np.log(max(share, 1e-30)))}
            for piece, share in zip(found.said, found.probabilities, strict=True)
        ],
        "labels": dict(found.labels),
        "maps": numbers(found.maps),
        "layers": found.layers,
        "heads": found.heads,
    }


def series(of: OpenVectors, index: int) -> dict[str, Any]:
    """A window of the validation part with its forecast, what came, and the baselines; or a labelled series
    with the probabilities of the labels."""
    if not isinstance(of.opened, VectorPredictor) or of.sees != "series":
        raise UserError(f"{of.run.directory.name}: this run reads images, not series")
    return _window(of, of.opened, index) if of.task.kind == "forecast" else _labels(of, of.opened, index)


def _labels(of: OpenVectors, predictor: VectorPredictor, index: int) -> dict[str, Any]:
    example = _example(of, index)
    batch = LabelledVectors(example.values[None], [example], of.task).unchanged(np.arange(1))
    with torch.inference_mode():
        (said,) = labelled(predictor.model(batch.to(predictor.device)), of.task)
    return {
        "all": len(of.data.valid),
        "name": " ".join(example.texts),
        "expected": str(example.target),
        "channels": _names(of, example.values.shape[1]),
        "past": _columns(example.values),
        "labels": dict(said.probabilities),
    }


def _window(of: OpenVectors, predictor: VectorPredictor, index: int) -> dict[str, Any]:
    windows, inputs = of.windows, of.windows.series
    count = len(windows) // windows.turns
    _check(index, count)
    rows = np.arange(index * windows.turns, (index + 1) * windows.turns)
    past, future = windows.cut(rows)
    said = in_batches(predictor.model, windows, predictor.device)(rows)  # R H c Q
    lines = {"model": said[..., inputs.median]}
    lines |= {name: by_channel(baseline, past) for name, baseline in of.baselines.items()}
    levels = inputs.quantiles
    between = {f"{level:g}": said[..., place] for place, level in enumerate(levels) if place != inputs.median}
    known = ~np.isnan(future)
    return {
        "all": count,
        "name": f"steps {index + 1:,} to {index + inputs.window + inputs.horizon:,} of the validation part",
        "channels": _names(of, windows.turns * future.shape[2]),
        "past": _restored(past, inputs),
        "future": _restored(future, inputs),
        "lines": {name: _restored(line, inputs) for name, line in lines.items()},
        "quantiles": {name: _restored(line, inputs) for name, line in between.items()},
        "errors": {
            name: {
                "mse": float(np.square(line - future)[known].mean()) if known.any() else None,
                "mae": float(np.abs(line - future)[known].mean()) if known.any() else None,
            }
            for name, line in lines.items()
        },
    }


def _names(of: OpenVectors, count: int) -> list[str]:
    """The names of the channels that are shown."""
    inputs = of.task.vectors
    named = list(inputs.columns) if isinstance(inputs, SeriesInput) else []
    return (named if len(named) == count else [str(place + 1) for place in range(count)])[:_MOST_CHANNELS]


def _restored(rows: np.ndarray, inputs: SeriesInput) -> list[Any]:
    """Channels of a window (R L C, one of R and C is 1), in the units of the data."""
    steps = rows[0] if len(rows) == 1 else rows[:, :, 0].T  # L C
    return _columns(steps * np.array(inputs.std) + np.array(inputs.mean))


def _columns(steps: np.ndarray) -> list[Any]:
    """A list for each channel; None for what is missing."""
    return numbers(np.asarray(steps, dtype=np.float64).T[:_MOST_CHANNELS])
