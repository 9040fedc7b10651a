"""What a decoder carries from one position to the next.

A state is a value: it is passed in and returned, and whoever passes it in has given it away, so that an
implementation may write into its own buffers. A search uses three moves:

    expand(k)        every sentence gets k rows (beams)
    select(order)    rows are exchanged inside their own sentence; what beams share stays where it is
    keep(sentences)  only these sentences go on; the rows of the others are dropped
"""

from dataclasses import dataclass
from typing import Protocol, Self

import torch

from dragoman.shapes import Float, Int, Tensor

_FIRST_CAPACITY = 16


class State(Protocol):
    def expand(self, k: int) -> Self: ...
    def select(self, order: Int[Tensor, "N"]) -> Self: ...
    def keep(self, sentences: Int[Tensor, "A"]) -> Self: ...


@dataclass(frozen=True)
class Moves:
    """The part of a reordering that changes something: row `target[i]` becomes what `source[i]` was."""

    source: Int[Tensor, "R"]
    target: Int[Tensor, "R"]

    @classmethod
    def of(cls, order: Int[Tensor, "N"]) -> "Moves":
        target = (order != torch.arange(len(order), device=order.device)).nonzero()[:, 0]
        return cls(order[target], target)


@dataclass(frozen=True)
class KeyValueCache:
    """Keys and values of the positions so far, in buffers that double when they are full."""

    keys: Float[Tensor, "N H C E"]
    values: Float[Tensor, "N H C W"]
    length: int = 0

    @classmethod
    def empty(cls, rows: int, num_heads: int, head_dim: int, value_dim: int, like: Tensor) -> "KeyValueCache":
        return cls(
            like.new_empty(rows, num_heads, _FIRST_CAPACITY, head_dim),
            like.new_empty(rows, num_heads, _FIRST_CAPACITY, value_dim),
        )

    @property
    def key(self) -> Float[Tensor, "N H T E"]:
        return self.keys[:, :, : self.length]

    @property
    def value(self) -> Float[Tensor, "N H T W"]:
        return self.values[:, :, : self.length]

    def append(self, key: Float[Tensor, "N H 1 E"], value: Float[Tensor, "N H 1 W"]) -> "KeyValueCache":
        keys, values = self.keys, self.values
        if self.length == keys.size(2):
            keys, values = (torch.cat([buffer, torch.empty_like(buffer)], dim=2) for buffer in (keys, values))
        keys[:, :, self.length] = key[:, :, 0]
        values[:, :, self.length] = value[:, :, 0]
        return KeyValueCache(keys, values, self.length + 1)

    def expand(self, k: int) -> "KeyValueCache":
        return KeyValueCache(
            self.keys.repeat_interleave(k, dim=0), self.values.repeat_interleave(k, dim=0), self.length
        )

    def move(self, moves: "Moves") -> "KeyValueCache":
        """Overwrite rows with other rows, as far as positions are in use."""
        if len(moves.target):
            self.keys[moves.target, :, : self.length] = self.keys[moves.source, :, : self.length]
            self.values[moves.target, :, : self.length] = self.values[moves.source, :, : self.length]
        return self

    def keep_rows(self, rows: Int[Tensor, "R"]) -> "KeyValueCache":
        return KeyValueCache(self.keys[rows], self.values[rows], self.length)


def rows_of(sentences: Int[Tensor, "A"], beams: int) -> Int[Tensor, "R"]:
    """The rows that belong to the given sentences, where every sentence has `beams` rows in a block."""
    offsets = torch.arange(beams, device=sentences.device)
    return (sentences[:, None] * beams + offsets).flatten()
