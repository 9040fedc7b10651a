"""What is chosen for a task of which nothing but its examples is known, and how its validation counts."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dragoman.data.config import DataConfig, SourceConfig
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import Example
from dragoman.data.seeded_random import Dice
from dragoman.data.vectors.config import SeriesInput
from dragoman.learning.prefix import cut_of
from dragoman.learning.task import choose_for_task
from dragoman.learning.validation import TextSize, per_token
from dragoman.learning.vector_plan import completed_vectors
from dragoman.text.tokenizer import BOS_ID, EOS_ID


@pytest.mark.parametrize(("number", "together"), [(2000, 32), (80, 10), (4, 1)])
def test_examples_of_an_update(number: int, together: int) -> None:
    """32, or an eighth of them all where they are few: an epoch has several updates."""
    examples = [Example(("x" * 120,), None, f"a.tsv:{line}") for line in range(number)]
    task = TaskConfig(kind="classify", max_length=16)
    chosen = choose_for_task(examples, task, max_updates=None, begun=True)
    assert chosen["train"]["max_updates"] == max(50, 4 * number // together)
    assert chosen["train"]["batch_tokens"] == max(16 * together, 2 * 16)


def chosen_for(path: Path, task: TaskConfig) -> dict[str, Any]:
    sections = ("model", "train", "schedule")
    return completed_vectors({}, task, DataConfig((SourceConfig((str(path),)),)), sections, None, False, None)


@pytest.mark.parametrize(
    ("height", "width", "patch"), [(28, 28, 4), (28, 30, 2), (30, 28, 2), (224, 224, 28), (3, 3, 3)]
)
def test_patches_divide_height_and_width(tmp_path: Path, height: int, width: int, patch: int) -> None:
    np.save(tmp_path / "a.images.npy", np.zeros((8, height, width), np.uint8))
    np.save(tmp_path / "a.labels.npy", np.arange(8) % 2)
    found = chosen_for(tmp_path / "a.images.npy", TaskConfig("image"))
    assert found["task"]["image"]["patch"] == patch
    assert found["model"]["max_positions"] == height * width // patch**2


@pytest.mark.parametrize(("steps", "window"), [(1000, 336), (967, 320), (300, 88), (60, 8)])
def test_a_window_and_what_follows_it_fit_often_into_the_training_part(
    tmp_path: Path, steps: int, window: int
) -> None:
    """Of the training part, 7 of 10 steps, the horizon is left out; a window is 336 or half of the rest."""
    np.save(tmp_path / "a.npy", np.random.default_rng(1).normal(size=steps))
    found = chosen_for(tmp_path / "a.npy", TaskConfig("forecast", series=SeriesInput(horizon=24)))
    assert found["task"]["series"]["window"] == window
    train = found["train"]
    assert (
        train["validate_every"] == train["save_every"] and train["log_every"] == train["validate_every"] // 4
    )


@pytest.mark.parametrize(("length", "patch", "stride"), [(50, 0, 0), (50, 7, 0), (33, 8, 3), (5, 8, 8)])
def test_the_window_of_labelled_series_is_the_least_that_holds_them_in_whole_patches(
    tmp_path: Path, length: int, patch: int, stride: int
) -> None:
    head = [*map(str, range(length)), "label"]
    rows = [[f"{value:.3f}" for value in np.random.default_rng(n).normal(size=length)] for n in range(6)]
    lines = [",".join(head), *(",".join([*row, "ab"[n % 2]]) for n, row in enumerate(rows))]
    (tmp_path / "s.csv").write_text("\n".join(lines) + "\n", "utf-8")
    given = TaskConfig("series", series=SeriesInput(patch=patch, stride=stride))
    found = chosen_for(tmp_path / "s.csv", given)["task"]["series"]
    window, patch, stride = found["window"], found["patch"], found["stride"]
    assert (window - patch) % stride == 0 and window >= length
    assert window == patch or window - stride < length


def test_a_prefix_ends_where_a_line_begins() -> None:
    block = np.array([EOS_ID, BOS_ID, 7, EOS_ID, BOS_ID, 8, 9, EOS_ID, BOS_ID])
    assert {cut_of(block, Dice(1, 0, number)) for number in range(50)} == {1, 4}
    assert {cut_of(np.array([EOS_ID, 5, 6, 7, 8]), Dice(1, 0, number)) for number in range(99)} == {1, 2, 3}


def test_perplexities_of_any_loss_are_numbers() -> None:
    found = per_token(torch.tensor([6.0, 3.0], dtype=torch.float64), 4)
    assert found == {"loss": 1.5, "perplexity": pytest.approx(math.exp(1.5)), "accuracy": 0.75}
    assert per_token(torch.tensor([4e6, 0.0], dtype=torch.float64), 4)["perplexity"] == math.exp(700)
    size = TextSize(words=10, bytes=50)
    assert size.rates(20.0) == {
        "word_perplexity": pytest.approx(math.exp(2)),
        "bits_per_byte": pytest.approx(0.4 / math.log(2)),
    }
    assert size.rates(1e6)["word_perplexity"] == math.exp(700)
