"""Draws scenes of two shapes with captions: `python recipes/scenes.py DIRECTORY [SEED]`.

train.images.npy  test.images.npy  held-out.images.npy, each with its captions in NAME.labels.npy

A scene has two shapes of different kinds, each in a colour, one of them left of or above the other:
«a red circle above a blue square». The pairs of colour and shape of `HELD_OUT` are in no training scene;
every scene of held-out has one of them.
"""

import sys
from pathlib import Path

import numpy as np

SIZE, BOX = 32, 12
COLOURS = {
    "red": (220, 40, 40),
    "green": (40, 180, 60),
    "blue": (50, 80, 220),
    "yellow": (230, 210, 50),
    "purple": (150, 60, 180),
    "white": (240, 240, 240),
}
SHAPES = ("circle", "square", "triangle", "cross")
HELD_OUT = {("red", "triangle"), ("blue", "circle"), ("yellow", "square"), ("purple", "cross")}
COUNTS = {"train": 12_000, "test": 1_000, "held-out": 1_000}


def mask_of(shape: str, size: int) -> np.ndarray:
    """The pixels of a shape in a square of this size."""
    y, x = np.mgrid[:size, :size] + 0.5 - size / 2
    half = size / 2
    if shape == "circle":
        return x**2 + y**2 <= half**2
    if shape == "square":
        return np.ones((size, size), dtype=bool)
    if shape == "triangle":
        return np.abs(x) <= (y + half) / 2
    return (np.abs(x) <= half / 3) | (np.abs(y) <= half / 3)


def draw(rng: np.random.Generator, held_out: bool) -> tuple[np.ndarray, str]:
    while True:
        kinds = rng.choice(SHAPES, 2, replace=False)
        colours = rng.choice(list(COLOURS), 2)
        things = list(zip(colours.tolist(), kinds.tolist(), strict=True))
        if any(thing in HELD_OUT for thing in things) == held_out:
            break
    relation = str(rng.choice(["left of", "above"]))
    image = np.full((SIZE, SIZE, 3), 15, dtype=np.int16)
    for turn, (colour, kind) in enumerate(things):
        size = int(rng.integers(8, BOX + 1))
        along = int(rng.integers(0, SIZE // 2 - size + 1)) + turn * SIZE // 2
        across = int(rng.integers(8, SIZE - 8 - size + 1))
        y, x = (across, along) if relation == "left of" else (along, across)
        image[y : y + size, x : x + size][mask_of(kind, size)] = COLOURS[colour]
    image += rng.integers(-12, 13, size=image.shape, dtype=np.int16)
    (first, one), (second, other) = things
    return image.clip(0, 255).astype(np.uint8), f"a {first} {one} {relation} a {second} {other}"


def main(directory: Path, seed: int = 1) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for name, count in COUNTS.items():
        images, captions = zip(*(draw(rng, name == "held-out") for _ in range(count)), strict=True)
        np.save(directory / f"{name}.images.npy", np.stack(images))
        np.save(directory / f"{name}.labels.npy", np.array(captions))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("give a directory to write to")
    main(Path(sys.argv[1]), *map(int, sys.argv[2:3]))
