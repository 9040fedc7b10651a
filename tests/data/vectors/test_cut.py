"""Patches, windows and augmentation against PyTorch and NumPy by hand."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import Example
from dragoman.data.vectors.config import ImageInput, SeriesInput
from dragoman.data.vectors.examples import Windows, window_batch
from dragoman.data.vectors.patches import augmented, image_patches, series_patches, turned, window_scale
from dragoman.data.vectors.stack import joined_series, window_starts
from dragoman.errors import UserError


def test_patches_are_those_of_unfold() -> None:
    images = np.random.default_rng(1).normal(size=(2, 6, 9, 3))
    expected = F.unfold(torch.from_numpy(images).permute(0, 3, 1, 2), 3, stride=3).transpose(1, 2)
    np.testing.assert_array_equal(image_patches(images, 3), expected.numpy())
    with pytest.raises(UserError, match="patches: 6 × 9 pixels cannot be cut into squares of 4"):
        image_patches(images, 4)


def test_augmentation_is_a_function_of_seed_epoch_and_number() -> None:
    images = np.random.default_rng(2).normal(size=(40, 5, 5, 1)).astype(np.float32)
    image = ImageInput(5, 5, 1, 1, (0.0,), (1.0,), shift=1, flip=True)
    numbers = np.arange(40)
    whole = augmented(images, image, numbers, 1, 3)
    np.testing.assert_array_equal(whole[7:9], augmented(images[7:9], image, numbers[7:9], 1, 3))
    assert not np.array_equal(whole, augmented(images, image, numbers, 1, 4))
    allowed = set()
    for flip in (False, True):
        turned = images[0][:, ::-1] if flip else images[0]
        for down in (-1, 0, 1):
            for right in (-1, 0, 1):
                moved = np.zeros_like(turned)
                moved[max(0, down) : 5 + min(0, down), max(0, right) : 5 + min(0, right)] = turned[
                    max(0, -down) : 5 - max(0, down), max(0, -right) : 5 - max(0, right)
                ]
                allowed.add(moved.tobytes())
    seen = {augmented(images[:1], image, numbers[:1], 1, epoch).tobytes() for epoch in range(200)}
    assert seen == allowed  # 9 places, mirrored or not
    plain = ImageInput(5, 5, 1, 1, (0.0,), (1.0,))
    np.testing.assert_array_equal(augmented(images, plain, numbers, 1, 3), images)


def test_windows_of_joined_series_begin_where_they_fit_into_one() -> None:
    series = [np.full((steps, 2), float(number)) for number, steps in enumerate((7, 2, 3, 10))]
    series[3][4, 1] = np.nan
    values = joined_series(series)
    assert len(values) == 7 + 2 + 3 + 10 + 3
    for length in (1, 3, 8, 30):
        windows = [values[start : start + length] for start in range(len(values) - length + 1)]
        right = [start for start, own in enumerate(windows) if not np.isinf(own).any()]
        assert window_starts(values, length).tolist() == right
    assert joined_series(series[:1]) is series[0]


def test_turned_images_are_those_of_pytorch() -> None:
    images = np.random.default_rng(5).normal(size=(4, 6, 9, 2))
    angles = np.deg2rad(np.array([0.0, 8.0, -25.0, 180.0]))
    height, width = 6, 9
    sine, cosine = np.sin(angles), np.cos(angles)
    ratio = (height - 1) / (width - 1)  # the grid counts from −1 to 1 along both sides
    rows = np.stack([[cosine, -sine * ratio, 0 * sine], [sine / ratio, cosine, 0 * sine]]).transpose(2, 0, 1)
    grid = F.affine_grid(torch.from_numpy(rows), [4, 2, height, width], align_corners=True)
    asked = torch.from_numpy(images).permute(0, 3, 1, 2)
    expected = F.grid_sample(asked, grid, padding_mode="zeros", align_corners=True).permute(0, 2, 3, 1)
    np.testing.assert_allclose(turned(images, angles), expected.numpy(), atol=1e-12)
    square = images[:, :6, :6]
    np.testing.assert_allclose(
        turned(square, np.full(4, np.pi / 2)), np.rot90(square, axes=(1, 2)), atol=1e-12
    )
    image = ImageInput(6, 6, 1, 1, (0.0,), (1.0,), rotate=10)
    numbers = np.arange(4)
    own = augmented(square, image, numbers, 1, 3)
    np.testing.assert_array_equal(own[2:3], augmented(square[2:3], image, numbers[2:3], 1, 3))
    assert not np.array_equal(own, augmented(square, image, numbers, 1, 4))
    with pytest.raises(UserError, match="rotate: expected at most 180 degrees, found 200"):
        ImageInput(rotate=200)


def test_mean_and_deviation_leave_out_what_is_missing() -> None:
    windows = np.random.default_rng(3).normal(3, 2, size=(2, 7, 2)).astype(np.float32)
    windows[0, 2, 1] = windows[0, 5, 1] = np.nan
    windows[1, :, 0] = 4
    mean, std = window_scale(windows)
    np.testing.assert_allclose(mean, np.nanmean(windows, axis=1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(std[0], np.nanstd(windows, axis=1, keepdims=True)[0], rtol=1e-5)
    assert std[1, 0, 0] == np.float32(1e-5)  # it does not move, and nothing is divided by 0


def test_patches_of_series_by_hand() -> None:
    window = np.array([[[1, 10], [2, 20], [np.nan, np.nan], [np.nan, np.nan], [5, 50], [6, np.nan]]])
    inputs = SeriesInput(6, 2, 2, mean=(0.0, 0.0), std=(1.0, 1.0))
    vectors, there = series_patches(window, inputs)
    assert vectors.tolist() == [[[1, 2, 10, 20], [0, 0, 0, 0], [5, 6, 50, 0]]]
    assert there.tolist() == [[True, False, True]]
    overlapping, _ = series_patches(window, SeriesInput(6, 2, 1, mean=(0.0, 0.0), std=(1.0, 1.0)))
    assert overlapping.shape == (1, 5, 4)


def test_what_a_window_is_normalised_by_is_put_back() -> None:
    rng = np.random.default_rng(4)
    past, future = rng.normal(5, 3, size=(3, 8, 1)), rng.normal(5, 3, size=(3, 4, 1))
    future[1, 2, 0] = np.nan
    series = SeriesInput(8, 2, 2, 4, mean=(0.0,), std=(1.0,), columns=("a",))
    batch = window_batch(past, future, series)
    mean, std = past.mean(axis=1, keepdims=True), past.std(axis=1, keepdims=True)
    np.testing.assert_allclose(batch.vectors.reshape(3, 8), ((past - mean) / std)[:, :, 0], atol=1e-5)
    scores = torch.from_numpy(((future - mean) / std)[:, :, 0])
    restored = batch.restored(scores)[..., 0].numpy()
    np.testing.assert_allclose(restored[batch.known], future[~np.isnan(future)], atol=1e-5)
    assert batch.num_tokens == 11


@pytest.mark.parametrize("channels", ["independent", "together"])
def test_windows_are_all_of_them(channels: str) -> None:
    values = np.arange(20.0).reshape(10, 2)
    series = SeriesInput(4, 2, 2, 3, ("a", "b"), channels, mean=(0.0, 0.0), std=(1.0, 1.0))  # type: ignore[arg-type]
    task = TaskConfig("forecast", series=series)
    windows = Windows(values, [Example((), None, f"step {n}") for n in range(4)], task)
    assert len(windows) == (8 if channels == "independent" else 4)
    past, future = windows.cut(np.array([len(windows) - 1]))
    expected = values[3:10] if channels == "together" else values[3:10, 1:]
    np.testing.assert_array_equal(np.concatenate([past, future], axis=1)[0], expected)
    assert windows.origin(len(windows) - 1) == "step 3"
