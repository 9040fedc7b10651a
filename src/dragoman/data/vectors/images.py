"""Labelled images: a table of paths (PNG, JPEG, `.npy`), or one array of all images."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import Example, VectorExample
from dragoman.data.labelled.records import read_json_lines, read_table
from dragoman.data.vectors.arrays import is_array, labels_file, read_array, read_labels
from dragoman.data.vectors.config import ImageInput
from dragoman.errors import UserError, missing_extra, no_such_file

_MOST_PIXELS = 1 << 26
_GREY = ("1", "L", "LA", "I", "I;16", "F")


def read_images(path: str, task: TaskConfig, labelled: bool) -> Iterator[VectorExample]:
    image = task.image or ImageInput()
    if is_array(path):
        pixels = [_as_pixels(each, path, image) for each in read_array(path, (3, 4))]
        labels = read_labels(path, len(pixels)) if labelled else [None] * len(pixels)
        for number, (own, label) in enumerate(zip(pixels, labels, strict=True)):
            yield VectorExample((f"{path}[{number}]",), label, f"{path}[{number}]", own)
    elif Path(path).suffix.lower() in (".png", ".jpg", ".jpeg") and not labelled:
        yield VectorExample((path,), None, path, read_image(path, image))
    else:
        for example in _rows(path, task, labelled):
            pixels = read_image(_beside(path, example.texts[0]), image, example.origin)
            yield VectorExample(example.texts, example.target, example.origin, pixels)


def files_of_images(path: str, task: TaskConfig) -> list[str]:
    """The files that a file of examples refers to."""
    if is_array(path):
        labels = labels_file(path)
        return [] if labels is None else [labels]
    found = [_beside(path, example.texts[0]) for example in _rows(path, task, labelled=True)]
    return list(dict.fromkeys(found))


def read_image(path: str, image: ImageInput, where: str | None = None) -> np.ndarray:
    """An image as an array (H W C) with values from 0 to 255, in the requested size and number of
    channels."""
    prefix = "" if where is None else f"{where}: "
    if not Path(path).is_file():
        raise no_such_file(path) if where is None else UserError(f"{where}: there is no image '{path}'")
    if is_array(path):
        return _as_pixels(read_array(path, (2, 3)), path, image)
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise missing_extra("PIL", "images", f"reading {path}") from None
    try:
        with Image.open(path) as opened:
            if opened.width * opened.height > _MOST_PIXELS:
                raise UserError(f"{prefix}{path}: {opened.width} × {opened.height} pixels are too many")
            grey = image.channels == 1 or (not image.channels and opened.mode in _GREY)
            picture: Any = opened.convert("L" if grey else "RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise UserError(f"{prefix}{path}: not an image that can be read ({error})") from None
    if image.height and (picture.height, picture.width) != (image.height, image.width):
        picture = picture.resize((image.width, image.height), Image.Resampling.BILINEAR)
    return _as_pixels(np.asarray(picture), path, image)


def _rows(path: str, task: TaskConfig, labelled: bool) -> Iterator[Example]:
    if path.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        return read_json_lines(path, task, labelled)
    return read_table(path, "csv" if path.removesuffix(".gz").endswith(".csv") else "tsv", task, labelled)


def _beside(table: str, path: str) -> str:
    return str(Path(table).parent / path)


def _as_pixels(values: np.ndarray, path: str, image: ImageInput) -> np.ndarray:
    if values.dtype != np.uint8:
        raise UserError(f"{path}: expected whole numbers from 0 to 255 (uint8), found {values.dtype}")
    pixels = values[:, :, None] if values.ndim == 2 else values
    height, width, channels = pixels.shape
    if channels not in (1, 3):
        raise UserError(f"{path}: expected 1 channel or 3 at the end of the shape, found {values.shape}")
    expected = image.height or height, image.width or width, image.channels or channels
    if (height, width, channels) != expected:
        told = " × ".join(map(str, expected))
        raise UserError(
            f"{path}: expected {told} numbers an image, found {' × '.join(map(str, pixels.shape))}"
        )
    return pixels
