"""The state of a decoder between two positions.

A state is a value that is passed in and returned. The caller gives it away: an implementation may write into
its buffers. A search uses three operations:

    expand(k)        every sentence gets k rows (beams)
    select(order)    rows are reordered inside their sentence; what beams share is not moved
    keep(sentences)  only the rows of these sentences are kept
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
    """The rows that a reordering changes: row `target[i]` becomes what row `source[i]` was."""

    source: Int[Tensor, "R"]
    target: Int[Tensor, "R"]

    @classmethod
    def of(cls, order: Int[Tensor, "N"]) -> "Moves":
        target = (order != torch.arange(len(order), device=order.device)).nonzero()[:, 0]
        return cls(order[target], target)


@dataclass(frozen=True)
class KeyValueCache:
    """Keys and values of the positions so far, in buffers that double when they are full.

    Positions come before heads, so that a row is one block of memory.
    """

    keys: Float[Tensor, "N C H E"]
    values: Float[Tensor, "N C H W"]
    length: int = 0

    @classmethod
    def empty(cls, rows: int, num_heads: int, head_dim: int, value_dim: int, like: Tensor) -> "KeyValueCache":
        return cls(
            like.new_empty(rows, _FIRST_CAPACITY, num_heads, head_dim),
            like.new_empty(rows, _FIRST_CAPACITY, num_heads, value_dim),
        )

    @property
    def key(self) -> Float[Tensor, "N H T E"]:
        return self.keys[:, : self.length].transpose(1, 2)

    @property
    def value(self) -> Float[Tensor, "N H T W"]:
        return self.values[:, : self.length].transpose(1, 2)

    def append(self, key: Float[Tensor, "N H Q E"], value: Float[Tensor, "N H Q W"]) -> "KeyValueCache":
        keys, values, end = self.keys, self.values, self.length + key.size(2)
        while end > keys.size(1):
            keys, values = (torch.cat([buffer, torch.empty_like(buffer)], dim=1) for buffer in (keys, values))
        keys[:, self.length : end] = key.transpose(1, 2)
        values[:, self.length : end] = value.transpose(1, 2)
        return KeyValueCache(keys, values, end)

    def expand(self, k: int) -> "KeyValueCache":
        rows = torch.arange(len(self.keys), device=self.keys.device)
        return self.keep_rows(rows.repeat_interleave(k))

    def move(self, moves: Moves) -> "KeyValueCache":
        """Overwrite rows with other rows; only positions in use are copied."""
        for buffer in (self.keys, self.values):
            used = buffer[:, : self.length]
            used.index_copy_(0, moves.target, used.index_select(0, moves.source))
        return self

    def keep_rows(self, rows: Int[Tensor, "R"]) -> "KeyValueCache":
        """New buffers with these rows; only positions in use are copied."""
        keys, values = (buffer.new_empty(len(rows), *buffer.shape[1:]) for buffer in (self.keys, self.values))
        for new, old in ((keys, self.keys), (values, self.values)):
            new[:, : self.length] = old[:, : self.length].index_select(0, rows)
        return KeyValueCache(keys, values, self.length)


@dataclass(frozen=True)
class InputWindow:
    """The last C inputs of a causal convolution in a ring buffer: position t overwrites slot t mod C.

    Inputs before the first position are zero.
    """

    inputs: Float[Tensor, "N C D"]

    @classmethod
    def empty(cls, rows: int, length: int, dim: int, like: Tensor) -> "InputWindow":
        return cls(like.new_zeros(rows, length, dim))

    def every(self, dilation: int, position: int) -> list[Float[Tensor, "N 1 D"]]:
        """Each `dilation`-th input before `position`, the oldest first; C is a multiple of it."""
        length = self.inputs.size(1)
        slots = [(position + offset) % length for offset in range(0, length, dilation)]
        return [self.inputs[:, slot : slot + 1] for slot in slots]

    def put(self, x: Float[Tensor, "N 1 D"], position: int) -> "InputWindow":
        if self.inputs.size(1):
            self.inputs[:, position % self.inputs.size(1)] = x[:, 0]
        return self

    def rows(self, rows: Int[Tensor, "R"]) -> "InputWindow":
        return InputWindow(self.inputs.index_select(0, rows))


def rows_of(sentences: Int[Tensor, "A"], beams: int) -> Int[Tensor, "R"]:
    """The rows of the given sentences; every sentence has `beams` consecutive rows."""
    offsets = torch.arange(beams, device=sentences.device)
    return (sentences[:, None] * beams + offsets).flatten()
