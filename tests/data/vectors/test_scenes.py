"""The scenes that a recipe draws: held-out pairs of colour and shape are in no training scene."""

import importlib.util
from pathlib import Path

import numpy as np

PATH = Path(__file__).parents[3] / "recipes" / "scenes.py"


def test_scenes_keep_pairs_apart_and_are_drawn_alike() -> None:
    spec = importlib.util.spec_from_file_location("scenes", PATH)
    assert spec is not None and spec.loader is not None
    scenes = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scenes)
    for held_out in (False, True):
        rng, again = np.random.default_rng(1), np.random.default_rng(1)
        for _ in range(150):
            image, caption = scenes.draw(rng, held_out)
            same, _ = scenes.draw(again, held_out)
            np.testing.assert_array_equal(image, same)
            words = caption.replace("left of", "left-of").split()
            things = {(words[1], words[2]), (words[5], words[6])}
            assert bool(things & scenes.HELD_OUT) == held_out
            assert words[3] in ("left-of", "above")
            # What is said stands where it is said: the colours are in the right half.
            half = image[:, :16] if words[3] == "left-of" else image[:16]
            near = np.abs(half.astype(int) - scenes.COLOURS[words[1]]).max(axis=2) < 13
            assert near.sum() >= 20, caption
