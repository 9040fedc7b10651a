"""Plot of a forecast after the preceding steps, with one panel per channel."""

from collections.abc import Mapping, Sequence

import numpy as np

from dragoman.evaluate.plot import COLOURS, DASHES, canvas, figure_files

_MOST = 12
"""Largest number of channels in a plot."""
_PAST = 4
"""Known steps that are shown for each step of the forecast; a window can be much longer."""


def draw_forecast(
    past: np.ndarray,
    said: np.ndarray,
    names: Sequence[str],
    quantiles: Sequence[float] = (),
    baselines: Mapping[str, np.ndarray] | None = None,
    endings: Sequence[str] = ("png", "svg"),
) -> dict[str, bytes]:
    """Plot past steps (L C), a forecast (H C Q) and baselines (H C each). With quantiles the median
    is a line, and the area between neighbouring quantiles is filled."""
    past = past[-_PAST * len(said) :]
    middle = list(quantiles).index(0.5) if quantiles else 0
    shown = min(len(names), _MOST)
    before = np.arange(-len(past) + 1, 1)
    after = np.arange(1, len(said) + 1)
    with canvas() as figure_of:
        figure = figure_of(figsize=(8.0, 0.5 + 1.5 * shown), dpi=200, layout="constrained")
        panels = figure.subplots(shown, 1, squeeze=False, sharex=True)[:, 0]
        for channel, axes in enumerate(panels):
            axes.plot(before, past[:, channel], color="0.35", linewidth=1.0, label="known")
            axes.plot(after, said[:, channel, middle], color=COLOURS[0], linewidth=1.4, label="forecast")
            for number, (name, other) in enumerate((baselines or {}).items(), start=1):
                how = {"color": COLOURS[number], "linestyle": DASHES[number % len(DASHES)], "linewidth": 0.9}
                axes.plot(after, other[:, channel], label=name, **how)
            for low in range(len(quantiles) // 2):
                outer = said[:, channel, low], said[:, channel, -1 - low]
                axes.fill_between(after, *outer, color=COLOURS[0], alpha=0.18, linewidth=0)
            axes.axvline(0, color="0.7", linewidth=0.8)
            axes.set_title(names[channel], fontsize=9, loc="left").set_parse_math(False)
            axes.grid(axis="y", color="0.88", linewidth=0.6)
            if channel == 0:
                axes.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), ncols=5)
        panels[-1].set_xlabel("step")
        return figure_files(figure, endings)
