"""Attention masks: which positions a query sees. True: visible.

A batch is padded, or packed: all its sequences in one row without padding. Only this module knows the
difference.

    padded   a b c .      packed   a b c d e        starts  0 3 5
             d e . .               0 1 2 0 1  places
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from dragoman.shapes import Bool, Float, Int, Tensor


@dataclass(frozen=True)
class Packing:
    """The sequences of a packed row."""

    starts: Int[Tensor, "C"]
    """The start of every sequence, and the end of the last one; int32 for kernels."""
    places: Int[Tensor, "1 N"]
    """The position of every token in its sequence."""
    rows: Int[Tensor, "1 N"]
    """The sequence of every token."""
    longest: int
    even: bool = False
    """Whether all sequences have that length."""

    @classmethod
    def of(cls, lengths: Int[Tensor, "B"], longest: int | None = None) -> "Packing":
        """For sequences of these lengths, in host memory. Sequences may be empty. `longest` may be greater
        than the longest of them."""
        longest = longest or int(lengths.max())
        starts = torch.zeros(len(lengths) + 1, dtype=torch.int32)
        starts[1:] = lengths.cumsum(0)
        rows = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        places = torch.arange(len(rows)) - starts[rows]
        return cls(starts, places[None], rows[None], longest, bool((lengths == longest).all()))

    @property
    def form(self) -> tuple[int, int, bool]:
        """The values that determine the shapes of all tensors and kernels."""
        return len(self.starts), self.longest, self.even

    def moved(self, move: Callable[[Tensor], Tensor]) -> "Packing":
        return replace(self, starts=move(self.starts), places=move(self.places), rows=move(self.rows))

    def padded(self, x: Float[Tensor, "1 H N E"]) -> Float[Tensor, "B H T E"]:
        """One padded row for every sequence."""
        if self.even:
            return x[0].unflatten(1, (-1, self.longest)).transpose(0, 1)
        wide = x.new_zeros(len(self.starts) - 1, self.longest, x.size(1), x.size(3))
        return wide.index_put((self.rows[0], self.places[0]), x[0].transpose(0, 1)).transpose(1, 2)

    def packed(self, x: Float[Tensor, "B H T E"]) -> Float[Tensor, "1 H N E"]:
        if self.even:
            return x.transpose(0, 1).flatten(1, 2)[None]
        return x.transpose(1, 2)[self.rows[0], self.places[0]].transpose(0, 1)[None]

    def visible(self) -> Bool[Tensor, "B 1 1 T"] | None:
        """The tokens of padded rows; None if there is no padding. Of an empty sequence one position is
        visible, since a softmax over nothing is NaN."""
        if self.even:
            return None
        places = torch.arange(self.longest, device=self.starts.device)
        return (places < self.starts.diff().clamp(min=1)[:, None])[:, None, None, :]


@dataclass(frozen=True)
class Mask:
    """`visible` is broadcast over heads and queries. `causal` hides the positions after each query.

    Causality is a flag because fused kernels then skip the hidden half. If there are more memory positions
    than queries, the queries are the last positions.
    """

    visible: Bool[Tensor, "B 1 #Q M"] | None = None
    causal: bool = False
    packing: tuple[Packing, Packing] | None = None
    """Packing of queries and memory: every sequence sees only its own memory. `visible` is then None."""

    def dense(self, queries: int, memory: int, device: torch.device) -> Bool[Tensor, "#B 1 #Q M"] | None:
        """The mask as one tensor; None if everything is visible."""
        if not self.causal:
            return self.visible
        ahead = memory - queries
        lower = torch.ones(queries, memory, dtype=torch.bool, device=device).tril(ahead)[None, None]
        return lower if self.visible is None else lower & self.visible


EVERYTHING = Mask()
CAUSAL = Mask(causal=True)


def padding(mask: Bool[Tensor, "B M"]) -> Mask:
    """Hide the padded positions of a memory."""
    if mask.device.type == "cpu" and bool(mask.all()):  # on a GPU this would synchronise
        return EVERYTHING
    return Mask(mask[:, None, None, :])


def packed(queries: Packing, memory: Packing, causal: bool = False) -> Mask:
    """Every sequence of queries sees its own sequence of the memory."""
    return Mask(causal=causal, packing=(queries, memory))


def lengths(mask: Bool[Tensor, "B M"]) -> Int[Tensor, "B"]:
    """The number of tokens in each row; at least 1, since sequence kernels take no empty sequences."""
    return mask.sum(dim=1).clamp(min=1)
