"""Completes the configuration for images and series: sizes and statistics from the data, and chosen
settings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dragoman.config import from_dict, to_dict
from dragoman.data.config import DataConfig
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import VectorExample
from dragoman.data.labelled.read import labels_of, read_examples
from dragoman.data.vectors.config import ImageInput, SeriesInput
from dragoman.data.vectors.series import read_series
from dragoman.data.vectors.stack import parts_of, the_files
from dragoman.errors import UserError
from dragoman.learning.task import METRICS_OF_TASK
from dragoman.models import chosen_config

_PATCHES = 64
_WINDOW, _PATCH = 336, 16
_EPOCHS = {"image": 40, "series": 40, "forecast": 10, "caption": 20}
_AT_ONCE = {"image": 64, "series": 32, "forecast": 256, "caption": 64}
"""Number of sequences per batch."""
_RATE = {"forecast": 3e-4}
_MODEL = {"image": "vit-tiny", "series": "vit-tiny", "forecast": "vit-series", "caption": "vit-tiny"}
_DECODER = "transformer-tiny"
_SMALL_IMAGE, _DEGREES = 64, 10.0


def completed_vectors(
    given: dict[str, Any],
    task: TaskConfig,
    data: DataConfig,
    missing: Sequence[str],
    updates: int | None,
    brings_model: bool,
    model: object,
) -> dict[str, Any]:
    """`completed_task` for tasks that read vectors."""
    if task.kind == "forecast":
        found, rows = _of_forecast(data, task)
    else:
        found, rows = _of_labelled(data, task, given.get("task"))
    own = given.get("task")
    said = own if isinstance(own, Mapping) else {}
    if task.kind == "forecast" and not brings_model:
        found["layers"] = said.get("layers", "mix")  # the embeddings are a linear way to what is to come
    whole = {**given, "task": {**said, "kind": task.kind, **found}}
    vectors = replace(task, **_as_configs(found)).vectors
    chosen = _chosen(task, rows, vectors.places, updates)
    sizes: dict[str, Any] = {"input_dim": vectors.vector, "max_positions": vectors.places}
    if isinstance(vectors, ImageInput) and _has_stem(model, brings_model):
        columns = vectors.width // vectors.patch
        sizes |= {"stem": "convolution", "channels": vectors.channels, "columns": columns}
    if task.kind == "caption":
        encoder = {"preset": _MODEL[task.kind], **sizes}
        chosen["model"] = {"kind": "mixed", "encoder": encoder, "decoder": {"preset": _DECODER}}
    elif not brings_model or chosen_config(model)[1].abilities.vectors is not None:
        chosen["model"] = ({} if brings_model else chosen["model"]) | sizes
    else:
        chosen["model"] = {}
    return {**whole, **{section: chosen[section] for section in missing}}


def refuse_other_images(task: Mapping[str, Any], start: str, begun: TaskConfig | None) -> None:
    """A run that is begun with has position embeddings for the patches of images of one size."""
    own, other = task.get("image"), begun.image if begun is not None else None
    if own is None or other is None:
        return
    image = from_dict(ImageInput, own, "task.image")
    sizes = [(each.height, each.width, each.channels, each.patch) for each in (image, other)]
    if sizes[0] == sizes[1]:
        return
    here, there = (f"{h} × {w} pixels in {c} channels, patches of {p}" for h, w, c, p in sizes)
    raise UserError(
        f"start: {start} has positions for images of {there}, and these are of {here}; set "
        "task.image.height, width and patch to its sizes, and images of PNG and JPEG are scaled"
    )


def _has_stem(model: object, brings_model: bool) -> bool:
    """Whether convolutions read an image: unless another model is given, or another stem."""
    stem = model.get("stem") if isinstance(model, Mapping) else None
    return stem == "convolution" or (stem is None and not brings_model)


def _augmentation(image: ImageInput, kind: str, given: object) -> dict[str, Any]:
    """Small images with labels are moved by up to a fourteenth of their side and turned by up to 10 degrees,
    if nothing else is said. Captions may say where something is."""
    said = given.get("image") if isinstance(given, Mapping) else None
    told = said if isinstance(said, Mapping) else {}
    side = max(image.height, image.width)
    if kind != "image" or side > _SMALL_IMAGE:
        return {}
    chosen = {"shift": max(1, round(side / 14)), "rotate": _DEGREES}
    return {name: value for name, value in chosen.items() if not getattr(image, name) and name not in told}


def _as_configs(found: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {"image": ImageInput, "series": SeriesInput}
    return {
        name: kinds[name](**{k: tuple(v) if isinstance(v, list) else v for k, v in value.items()})
        for name, value in found.items()
        if name in kinds
    }


def _of_labelled(data: DataConfig, task: TaskConfig, given: object) -> tuple[dict[str, Any], int]:
    examples = [
        example
        for source in data.train
        for example in read_examples(source, task)
        if isinstance(example, VectorExample)
    ]
    if not examples:
        files = ", ".join(f for s in data.train for f in s.files)
        raise UserError(f"{files}: there is no example to learn from")
    labels = {} if task.labels or task.kind == "caption" else {"labels": list(labels_of(examples, task))}
    if task.kind != "series":
        image = _image_of(examples, task.image or ImageInput())
        image = replace(image, **_augmentation(image, task.kind, given))
        return labels | {"image": to_dict(image)}, len(examples)
    return labels | {"series": to_dict(_series_of(examples, task.series or SeriesInput()))}, len(examples)


def _image_of(examples: Sequence[VectorExample], image: ImageInput) -> ImageInput:
    height, width, channels = examples[0].values.shape
    height, width, channels = image.height or height, image.width or width, image.channels or channels
    sums = np.zeros((2, channels))
    count = 0
    for example in examples:
        if example.values.shape[2] != channels:
            raise UserError(
                f"{example.origin}: expected {channels} channels as in the first image, found "
                f"{example.values.shape[2]}; set task.image.channels to 1 or 3"
            )
        pixels = example.values.reshape(-1, channels) / 255
        sums += [pixels.sum(axis=0), np.square(pixels).sum(axis=0)]
        count += len(pixels)
    mean = sums[0] / count
    std = np.sqrt(np.maximum(sums[1] / count - mean**2, 0))
    return replace(
        image,
        height=height,
        width=width,
        channels=channels,
        patch=image.patch or _patch_of(height, width),
        mean=image.mean or _rounded(mean),
        std=image.std or _rounded(np.where(std > 0, std, 1)),
    )


def _patch_of(height: int, width: int) -> int:
    """The patch size that divides the image into a number of squares nearest to 64."""
    fitting = [size for size in range(2, min(height, width) + 1) if not height % size and not width % size]
    if not fitting:
        raise UserError(
            f"task.image.patch: no square divides {height} × {width} pixels; set task.image.height and width"
        )
    return min(fitting, key=lambda size: (abs(np.log(height * width / size**2 / _PATCHES)), size))


def _series_of(examples: Sequence[VectorExample], series: SeriesInput) -> SeriesInput:
    channels = examples[0].values.shape[1]
    for example in examples:
        if example.values.shape[1] != channels:
            raise UserError(
                f"{example.origin}: expected {channels} channels as in the first series, found "
                f"{example.values.shape[1]}"
            )
    longest = max(len(example.values) for example in examples)
    patch = series.patch or max(1, round((series.window or longest) / 32))
    stride = series.stride or patch
    window = series.window or patch + -(-max(0, longest - patch) // stride) * stride
    everything = np.concatenate([example.values for example in examples]).astype(np.float64)
    mean, std = _statistics(everything)
    return replace(
        series,
        window=window,
        patch=patch,
        stride=stride,
        mean=series.mean or mean,
        std=series.std or std,
    )


def _of_forecast(data: DataConfig, task: TaskConfig) -> tuple[dict[str, Any], int]:
    series = task.series or SeriesInput()
    parts: dict[str, np.ndarray] = {}
    names: tuple[str, ...] = series.columns
    for path in the_files(data):
        read = read_series(path, names)
        names = names or read.names  # those of the first file
        single = replace(series, window=1, horizon=1, patch=0, stride=0)
        parts[path] = read.values[: parts_of(len(read.values), single, path)["train"][1]]
    shortest = min(parts, key=lambda path: len(parts[path]))
    longest = max(parts.values(), key=len)
    train = len(parts[shortest])
    room = train - series.horizon
    window = series.window or (_WINDOW if room >= 2 * _WINDOW else room // 16 * 8)
    if window < 2:
        raise UserError(
            f"{shortest}: the training part has {train:,} steps, which is too short for a horizon of "
            f"{series.horizon}; lower task.series.horizon"
        )
    patch = series.patch or (_PATCH if window >= 4 * _PATCH else max(1, window // 8))
    mean, std = _statistics(np.concatenate(list(parts.values())))
    found = replace(
        series,
        columns=names,
        window=window,
        patch=patch,
        stride=series.stride or max(1, patch // 2),
        season=series.season or season_of((longest - np.array(mean)) / np.array(std), window),
        mean=series.mean or mean,
        std=series.std or std,
    )
    windows = sum(max(1, len(values) - window - series.horizon + 1) for values in parts.values())
    return {"series": to_dict(found)}, windows * len(names) // found.row_channels


def season_of(values: np.ndarray, most: int) -> int:
    """The season length: the lag of at most `most` steps at which the mean squared difference has its lowest
    local minimum. 1 if there is none."""
    most = min(most, len(values) // 2)
    differences = [np.inf, *(np.nanmean(np.square(values[d:] - values[:-d])) for d in range(1, most + 2))]
    low = [d for d in range(2, most + 1) if differences[d - 1] > differences[d] <= differences[d + 1]]
    return min(low, key=lambda d: differences[d], default=1)


def _statistics(values: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel over its known values."""
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, values, 0.0).sum(axis=0) / count
    std = np.sqrt(np.square(np.where(known, values - mean, 0.0)).sum(axis=0) / count)
    return tuple(mean.tolist()), tuple(np.where(std > 0, std, 1.0).tolist())


def _rounded(values: np.ndarray) -> tuple[float, ...]:
    return tuple(round(float(value), 6) for value in values)


def _chosen(task: TaskConfig, rows: int, places: int, max_updates: int | None) -> dict[str, Any]:
    a_batch = max(1, min(_AT_ONCE[task.kind], rows // 8))
    updates = max_updates or max(100, _EPOCHS[task.kind] * rows // a_batch)
    every = max(1, min(updates, max(20, updates // 20)))
    return {
        "tokenizer": {"vocab_size": 1000} if task.kind == "caption" else {"kind": "byte", "vocab_size": 259},
        "model": {"preset": _MODEL[task.kind]},
        "objective": {},
        "optim": {"name": "adamw", "rate": _RATE.get(task.kind, 1e-3), "weight_decay": 0.05},
        "schedule": {"name": "cosine", "warmup": min(max(1, updates // 20), updates - 1), "total": updates},
        "train": {
            "max_updates": updates,
            "batch_tokens": a_batch * (places + 1),
            "log_every": max(1, every // 4),
            "validate_every": every,
            "save_every": every,
            "metric": METRICS_OF_TASK[task.kind][0],
        },
    }
