"""Convert images and series into sequences of vectors."""

import numpy as np

from dragoman.data.seeded import uniform_each
from dragoman.data.vectors.config import ImageInput, SeriesInput
from dragoman.errors import UserError

_LEAST = 1e-5
"""Smallest standard deviation of a window. It replaces that of a constant window."""


def image_patches(images: np.ndarray, size: int) -> np.ndarray:
    """Cut images (B H W C) into patches (B T I): squares of `size` × `size`, row by row, with the channels of
    a square one after the other."""
    count, height, width, channels = images.shape
    if height % size or width % size:
        raise UserError(f"patches: {height} × {width} pixels cannot be cut into squares of {size}")
    cut = images.reshape(count, height // size, size, width // size, size, channels)
    return cut.transpose(0, 1, 3, 5, 2, 4).reshape(count, -1, channels * size * size)


def scaled_pixels(images: np.ndarray, image: ImageInput) -> np.ndarray:
    """Images scaled to mean 0 and standard deviation 1 over the training images."""
    mean, std = (np.array(each, dtype=np.float32) for each in (image.mean, image.std))
    return (images.astype(np.float32) / 255 - mean) / std


def augmented(
    images: np.ndarray, image: ImageInput, numbers: np.ndarray, seed: int, epoch: int
) -> np.ndarray:
    """Images moved and mirrored. The random draw of each image is a function of its number, the seed and the
    epoch. Pixels that move in have the mean colour, which is 0."""
    if not image.shift and not image.flip:
        return images
    draws = [uniform_each(numbers, seed, epoch, turn) for turn in range(3)]
    if image.flip:
        images = np.where(draws[2][:, None, None, None] < 0.5, images[:, :, ::-1], images)
    if not image.shift:
        return images
    by = image.shift
    padded = np.pad(images, ((0, 0), (by, by), (by, by), (0, 0)))
    found = np.empty_like(images)
    height, width = images.shape[1:3]
    for row, (down, right) in enumerate(
        zip(*((draw * (2 * by + 1)).astype(int) for draw in draws[:2]), strict=True)
    ):
        found[row] = padded[row, down : down + height, right : right + width]
    return found


def window_scale(windows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean and standard deviation (B 1 C each) of each window (B L C), over its known steps (Kim et al.
    2022)."""
    known = ~np.isnan(windows)
    count = np.maximum(known.sum(axis=1, keepdims=True), 1)
    mean = np.where(known, windows, 0.0).sum(axis=1, keepdims=True) / count
    spread = np.where(known, windows - mean, 0.0)
    std = np.sqrt(np.square(spread).sum(axis=1, keepdims=True) / count)
    return mean.astype(np.float32), np.maximum(std, _LEAST).astype(np.float32)


def series_patches(windows: np.ndarray, series: SeriesInput) -> tuple[np.ndarray, np.ndarray]:
    """Cut windows (B L C) into patches (B T I), with the channels of a patch one after the other. The second
    result (B T) says whether a patch has any known value. Missing values become 0."""
    cut = np.lib.stride_tricks.sliding_window_view(windows, series.patch, axis=1)[:, :: series.stride]
    known = ~np.isnan(cut)  # B T C patch
    vectors = np.where(known, cut, 0.0).astype(np.float32)
    return vectors.reshape(*vectors.shape[:2], -1), known.sum(axis=(2, 3)) > 0


def standardised(values: np.ndarray, series: object) -> np.ndarray:
    """Values minus the mean of the training part, divided by its standard deviation, per channel."""
    assert isinstance(series, SeriesInput), "these are series"
    return ((values - np.array(series.mean)) / np.array(series.std)).astype(np.float32)
