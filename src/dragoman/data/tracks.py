"""Blocks of text in their order, so that every row of a batch goes on where it ended in the batch before.

    text     0 1 2 3 4 5 6 7 8 9         batches   0 4 8
    tracks   0 1 2 3 | 4 5 6 7 | 8 9               1 5 9
                                                   2 6
                                                   3 7

A text is cut into as many tracks as a batch has rows, and all are read at once, as AWD-LSTM is trained
(Merity et al. 2018). Those that end early are the last rows: what is left are always the first ones, and
every block is read once. No epoch differs from another.
"""

from collections.abc import Iterator

import numpy as np

from dragoman.data.sampler import FIRST, Window
from dragoman.errors import UserError


class TrackSampler:
    """`data/sampler.py` says what a sampler is."""

    def __init__(self, blocks: int, rows: int) -> None:
        if not blocks:
            raise UserError("there is no text to read: the corpus is empty")
        self.blocks = self.draws = blocks
        self.steps = -(-blocks // max(1, rows))
        """Blocks of the longest track."""
        self.firsts = np.arange(0, blocks, self.steps)

    def batches(self, epoch: int, start: int = 0) -> Iterator[np.ndarray]:  # noqa: ARG002
        for step in range(start, self.steps):
            numbers = self.firsts + step
            yield numbers[numbers < self.blocks]

    def placed(
        self, epoch: int, start: int = 0, window: Window = FIRST
    ) -> Iterator[tuple[np.ndarray, Window]]:
        """All of an epoch is one window."""
        return ((batch, window) for batch in self.batches(epoch, start))

    def num_batches(self, epoch: int, windows: int | None = None) -> int:  # noqa: ARG002
        return self.steps
