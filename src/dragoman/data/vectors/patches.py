"""Convert images and series into sequences of vectors."""

import numpy as np

from dragoman.data.seeded_random import uniform_each
from dragoman.data.vectors.config import ImageInput, SeriesInput
from dragoman.errors import UserError

_LEAST = 1e-5
"""Smallest standard deviation of a window. It replaces that of a constant window."""
_FARTHEST = 1e12
"""Numbers farther from the mean, in standard deviations, are in other units; single precision cannot hold
their squares."""


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
    """Images moved, turned and mirrored. The random draw of each image is a function of its number, the seed
    and the epoch. Pixels that come in from outside have the mean colour, which is 0."""
    if not image.shift and not image.flip and not image.rotate:
        return images
    down, right, mirror, turn = (uniform_each(numbers, seed, epoch, draw) for draw in range(4))
    if image.flip:
        images = np.where(mirror[:, None, None, None] < 0.5, images[:, :, ::-1], images)
    if image.rotate:
        images = turned(images, np.deg2rad(image.rotate) * (2 * turn - 1))
    if not image.shift:
        return images
    by = image.shift
    padded = np.pad(images, ((0, 0), (by, by), (by, by), (0, 0)))
    found = np.empty_like(images)
    height, width = images.shape[1:3]
    steps = ((draw * (2 * by + 1)).astype(int) for draw in (down, right))
    for row, (y, x) in enumerate(zip(*steps, strict=True)):
        found[row] = padded[row, y : y + height, x : x + width]
    return found


def turned(images: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Each image (B H W C) turned anticlockwise about its middle by its angle, by bilinear interpolation."""
    height, width = images.shape[1:3]
    middle_y, middle_x = (height - 1) / 2, (width - 1) / 2
    y, x = np.mgrid[:height, :width]
    y, x = y - middle_y, x - middle_x
    sine, cosine = (part[:, None, None] for part in (np.sin(angles), np.cos(angles)))
    from_y = y * cosine + x * sine + middle_y  # B H W: where each pixel comes from
    from_x = x * cosine - y * sine + middle_x
    rows = np.arange(len(images))[:, None, None]
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    top = np.clip(np.floor(from_y), -1, height - 1).astype(int)
    left = np.clip(np.floor(from_x), -1, width - 1).astype(int)
    below, beside = (from_y - top)[..., None], (from_x - left)[..., None]
    inside = ((from_y > -1) & (from_y < height) & (from_x > -1) & (from_x < width))[..., None]
    found = (
        padded[rows, top + 1, left + 1] * (1 - below) * (1 - beside)
        + padded[rows, top + 2, left + 1] * below * (1 - beside)
        + padded[rows, top + 1, left + 2] * (1 - below) * beside
        + padded[rows, top + 2, left + 2] * below * beside
    )
    return np.where(inside, found, 0.0).astype(images.dtype)


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
    found = (values - np.array(series.mean, dtype=np.float64)) / np.array(series.std, dtype=np.float64)
    if (np.abs(found) > _FARTHEST).any():
        raise UserError(
            f"a number is {np.nanmax(np.abs(found)):.3g} standard deviations from the mean of the training "
            "part: is it in other units?"
        )
    return found.astype(np.float32)
