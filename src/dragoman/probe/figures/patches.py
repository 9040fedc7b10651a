"""Plot of the attention over an image for each label or piece, brighter at higher weights."""

from collections.abc import Sequence

import numpy as np

from dragoman.evaluate.plot import canvas, figure_files
from dragoman.probe.figures.pieces import visible_spaces

_ACROSS = 6
_INCHES = 1.5


def draw_patches(
    image: np.ndarray,
    said: Sequence[str],
    probabilities: Sequence[float],
    maps: np.ndarray,
    endings: Sequence[str] = ("png", "svg"),
) -> dict[str, bytes]:
    """Plot an image (H W C) with attention maps (N Y X) for what was said, with its probabilities. The first
    panel is the image itself. In the others, the patch with the highest weight is bright, and patches without
    weight are dark."""
    count = len(said) + 1
    across = min(_ACROSS, count)
    down = -(-count // across)
    height, width = image.shape[:2]
    each = np.kron(maps, np.ones((height // maps.shape[1], width // maps.shape[2])))
    light = 0.15 + 0.85 * each / each.max(axis=(1, 2), keepdims=True)
    colours = np.broadcast_to(image, (height, width, 3)) / 255
    titles = [
        f"{visible_spaces(word)}  {100 * share:.0f}%" for word, share in zip(said, probabilities, strict=True)
    ]
    panels = [("image", colours), *zip(titles, colours * light[..., None] + _warm(light), strict=True)]
    with canvas() as figure_of:
        figure = figure_of(figsize=(_INCHES * across, (_INCHES + 0.3) * down), dpi=200, layout="constrained")
        grid = list(figure.subplots(down, across, squeeze=False).flat)
        for axes in grid:
            axes.set_axis_off()
        for axes, (word, picture) in zip(grid, panels, strict=False):
            axes.imshow(np.clip(picture, 0, 1), interpolation="nearest")
            axes.set_title(word, fontsize=9).set_parse_math(False)
        return figure_files(figure, endings)


def _warm(light: np.ndarray) -> np.ndarray:
    """Add a little orange in proportion to the attention, which stays visible on black."""
    return 0.35 * light[..., None] ** 2 * np.array([0.9, 0.5, 0.1])
