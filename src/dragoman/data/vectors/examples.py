"""Images and series in the form that training draws batches from; see `Examples` in `learning/base.py`."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from dragoman.data.batch import VectorBatch
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import Example
from dragoman.data.sampler import CorpusRange
from dragoman.data.vectors.config import SeriesInput
from dragoman.data.vectors.patches import (
    augmented,
    image_patches,
    scaled_pixels,
    series_patches,
    standardised,
    window_scale,
)
from dragoman.data.vectors.stack import window_starts


class VectorExamples(ABC):
    """Common base of image and series examples: all sequences have the same length."""

    def __init__(
        self, examples: Sequence[Example], task: TaskConfig, rows: int, corpora: Sequence[CorpusRange]
    ) -> None:
        self.task, self.examples, self.rows = task, examples, rows
        self.src_lengths = np.full(rows, task.vectors.places, dtype=np.int32)
        self.tgt_lengths = np.zeros(rows, dtype=np.int32)
        self.corpora = list(corpora) or [CorpusRange(0, rows)]

    def __len__(self) -> int:
        return self.rows

    def origin(self, index: int) -> str:
        return self.examples[index].origin

    @abstractmethod
    def batch(self, numbers: np.ndarray, epoch: int) -> VectorBatch: ...

    @abstractmethod
    def unchanged(self, numbers: np.ndarray) -> VectorBatch:
        """A batch without augmentation, for validation and prediction."""

    def in_order(self, batch_tokens: int) -> Iterator[np.ndarray]:
        each = max(1, batch_tokens // (self.task.vectors.places + 1))
        return (np.arange(at, min(at + each, self.rows)) for at in range(0, self.rows, each))


class LabelledVectors(VectorExamples):
    """Images or series with one label each."""

    def __init__(
        self,
        values: np.ndarray,
        examples: Sequence[Example],
        task: TaskConfig,
        corpora: Sequence[CorpusRange] = (),
        seed: int = 0,
    ) -> None:
        super().__init__(examples, task, len(examples), corpora)
        self.values, self.seed = values, seed
        number_of = {label: number for number, label in enumerate(task.labels)}
        self.labels = np.array([number_of.get(str(each.target), 0) for each in examples], dtype=np.int64)

    def batch(self, numbers: np.ndarray, epoch: int) -> VectorBatch:
        return self._batch(numbers, epoch)

    def unchanged(self, numbers: np.ndarray) -> VectorBatch:
        return self._batch(numbers, None)

    def _batch(self, numbers: np.ndarray, epoch: int | None) -> VectorBatch:
        own = self.values[numbers]
        if self.task.image is not None:
            scaled = scaled_pixels(own, self.task.image)
            if epoch is not None:
                scaled = augmented(scaled, self.task.image, numbers, self.seed, epoch)
            vectors = image_patches(scaled, self.task.image.patch)
            there = np.ones(vectors.shape[:2], dtype=bool)
        else:
            series = self.task.vectors
            assert isinstance(series, SeriesInput), "images have been handled"
            vectors, there = series_patches(standardised(own, series), series)
        targets = torch.from_numpy(self.labels[numbers])
        return VectorBatch(torch.from_numpy(vectors), _with_own_place(there), targets, len(numbers))


class Windows(VectorExamples):
    """All windows of one or several series with the steps that follow them, per channel or with all channels
    together."""

    def __init__(self, values: np.ndarray, examples: Sequence[Example], task: TaskConfig) -> None:
        series = task.vectors
        assert isinstance(series, SeriesInput), "forecasts are made from series"
        self.series = series
        self.turns = values.shape[1] // series.row_channels
        whole = series.window + series.horizon
        self.starts = window_starts(values, whole)
        assert len(self.starts) == len(examples), "an example for each window"
        super().__init__(examples, task, len(examples) * self.turns, ())
        self._cut = np.lib.stride_tricks.sliding_window_view(values, whole, axis=0) if self.rows else None

    def origin(self, index: int) -> str:
        return self.examples[index // self.turns].origin

    def batch(self, numbers: np.ndarray, epoch: int) -> VectorBatch:  # noqa: ARG002 (nothing is random)
        return self.unchanged(numbers)

    def unchanged(self, numbers: np.ndarray) -> VectorBatch:
        return window_batch(*self.cut(numbers), self.series)

    def cut(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The windows (B L C) and the steps that follow them (B H C)."""
        assert self._cut is not None, "there are windows"
        starts, turns = self.starts[numbers // self.turns], numbers % self.turns
        if self.turns == 1:
            windows = self._cut[starts].transpose(0, 2, 1)  # B L+H C
        else:
            windows = self._cut[starts, turns][:, :, None]
        return windows[:, : self.series.window], windows[:, self.series.window :]


def window_batch(past: np.ndarray, future: np.ndarray, series: SeriesInput) -> VectorBatch:
    """A batch from past (B L C) and future (B H C) steps, in units of the training part's standard
    deviation."""
    shift, scale = np.zeros_like(past[:, :1]), np.ones_like(past[:, :1])
    if series.by_window:
        shift, scale = window_scale(past)
    vectors, there = series_patches((past - shift) / scale, series)
    known = ~np.isnan(future)
    targets = np.where(known, future, 0.0).astype(np.float32)
    return VectorBatch(
        torch.from_numpy(vectors),
        _with_own_place(there),
        torch.from_numpy(targets),
        max(1, int(known.sum())),
        torch.from_numpy(np.ascontiguousarray(shift, dtype=np.float32)),
        torch.from_numpy(np.ascontiguousarray(scale, dtype=np.float32)),
        torch.from_numpy(known),
    )


def _with_own_place(there: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.pad(there, ((0, 0), (1, 0)), constant_values=True))
