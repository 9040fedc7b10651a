"""A text with what is to be said about it, as all readers give it."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class AnswerSpan:
    start: int
    """In characters of the context."""
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


Target = str | float | int | tuple[str, ...] | tuple[AnswerSpan, ...]
"""classify, pair: a label; similarity, regress: a score; choice: a number from 0; tag: a label for every
word; span: the answers that count as right."""


@dataclass(frozen=True)
class Example:
    texts: tuple[str, ...]
    """classify, regress: one text; pair, similarity: two; tag: the words; span: question and context; choice:
    what comes first, and all that may follow."""
    target: Target | None
    """None where it is not known."""
    origin: str
    """File and line."""


@dataclass(frozen=True)
class VectorExample(Example):
    """An image or a series; its text is its name."""

    values: np.ndarray
    """Pixels by height, width and channel; or numbers by step and channel, NaN where none is known."""
