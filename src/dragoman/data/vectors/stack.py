"""Examples as arrays for the store: images or series stacked, or the parts of one series."""

from collections.abc import Sequence

import numpy as np

from dragoman.data.config import DataConfig
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import Example, VectorExample
from dragoman.data.vectors.config import SeriesInput
from dragoman.data.vectors.patches import standardised
from dragoman.data.vectors.series import read_series
from dragoman.errors import UserError


def stacked_arrays(examples: Sequence[Example], task: TaskConfig) -> np.ndarray:
    """The images, or the series padded to the window with NaN."""
    own = [example for example in examples if isinstance(example, VectorExample)]
    if task.image is not None:
        shape = (task.image.height, task.image.width, task.image.channels)
        for example in own:
            _refuse_other_shape(example, shape)
        return np.stack([example.values for example in own]) if own else np.zeros((0, *shape), np.uint8)
    series = task.vectors
    assert isinstance(series, SeriesInput), "images have been handled"
    found = np.full((len(own), series.window, len(series.mean)), np.nan, dtype=np.float32)
    for row, example in enumerate(own):
        length, channels = example.values.shape
        if channels != len(series.mean) or length > series.window:
            raise UserError(
                f"{example.origin}: expected at most {series.window} steps of {len(series.mean)} channels as "
                f"in training, found {length} of {channels}"
            )
        found[row, :length] = example.values
    return found


def _refuse_other_shape(example: VectorExample, shape: tuple[int, ...]) -> None:
    if example.values.shape != shape:
        told, wanted = (" × ".join(map(str, each)) for each in (example.values.shape, shape))
        raise UserError(
            f"{example.origin}: expected {wanted} numbers as in the first image, found {told}; set "
            "task.image.height and task.image.width, and images of PNG and JPEG are scaled"
        )


def parts_of(steps: int, series: SeriesInput, path: str) -> dict[str, tuple[int, int]]:
    """The step range of each part. Validation and test ranges begin one window early, inside the part before,
    so that the first step of a part is forecast too (Zhou et al. 2021)."""
    first, second, third = series.split
    if first + second + third <= 1 + 1e-9:
        train, test = int(steps * first), int(steps * third)
        valid = steps - train - test if first + second + third > 1 - 1e-9 else int(steps * second)
    else:
        train, valid, test = (int(each) for each in series.split)
    if train + valid + test > steps:
        raise UserError(
            f"{path}: task.series.split asks for {train + valid + test:,} steps, and there are {steps:,}"
        )
    needed = series.window + series.horizon
    if train < needed:
        raise UserError(
            f"{path}: the training part has {train:,} steps, and a window of {series.window} with a horizon "
            f"of {series.horizon} needs {needed}; lower task.series.window or task.series.horizon"
        )
    begin = train + valid
    return {
        "train": (0, train),
        "valid": (train - series.window, begin),
        "test": (begin - series.window, begin + test),
    }


def series_parts(
    data: DataConfig, task: TaskConfig
) -> tuple[dict[str, np.ndarray], dict[str, list[Example]]]:
    """The parts of all series in units of the training part's standard deviation, with an example for each
    window. Each series is divided by itself; in a part they stand one after the other (`joined`)."""
    series = task.vectors
    assert isinstance(series, SeriesInput), "forecasts are made from series"
    found: dict[str, list[np.ndarray]] = {"train": [], "valid": [], "test": []}
    examples: dict[str, list[Example]] = {name: [] for name in found}
    for path in the_files(data):
        values = standardised(read_series(path, series.columns).values, series)
        for name, (start, end) in parts_of(len(values), series, path).items():
            found[name].append(values[start:end])
            count = max(0, end - start - series.window - series.horizon + 1)
            examples[name] += [
                Example((f"{path}[{start + number}]",), None, f"{path}: step {start + number + 1}")
                for number in range(count)
            ]
    return {name: joined_series(values) for name, values in found.items()}, examples


def joined_series(series: Sequence[np.ndarray]) -> np.ndarray:
    """Series (N C) one after the other, with a row of infinities between two of them."""
    border = np.full((1, series[0].shape[1]), np.inf, dtype=series[0].dtype)
    rows = [series[0]]
    for values in series[1:]:
        rows += [border, values]
    return np.concatenate(rows) if len(rows) > 1 else rows[0]


def window_starts(values: np.ndarray, length: int) -> np.ndarray:
    """Where windows of this length begin that lie within one of the joined series."""
    borders = np.isinf(values).any(axis=1).cumsum()
    before = np.concatenate([[0], borders])
    return np.flatnonzero(before[length:] == before[: max(0, len(before) - length)])


def the_files(data: DataConfig) -> list[str]:
    """The files with the series to forecast, one each."""
    for source in data.valid:
        raise UserError(f"{source.files[0]}: task.series.split divides every series; leave --valid out")
    return [file for source in data.train for file in source.files]
