"""An example and its target, as every reader returns it."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class AnswerSpan:
    start: int
    """Offset in the context, in characters."""
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


Target = str | float | int | tuple[str, ...] | tuple[AnswerSpan, ...]
"""classify, pair: a label. similarity, regress: a score. choice: the index of the right choice. tag: a label
for every word. span: the answers that count as right."""


@dataclass(frozen=True)
class Example:
    texts: tuple[str, ...]
    """classify, regress: one text. pair, similarity: two texts. tag: the words. span: the question and the
    context. choice: the beginning and all choices."""
    target: Target | None
    """None if unknown."""
    origin: str
    """File and line of the example."""


@dataclass(frozen=True)
class VectorExample(Example):
    """An image or a series. Its text is its name."""

    values: np.ndarray
    """Pixels by height, width and channel, or numbers by step and channel, with NaN for missing values."""
