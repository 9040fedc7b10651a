"""Which positions may be looked at. True = may look.

A batch is padded at its end, or packed: all its sequences one after another in one row, with nothing between
them. This is the one place that knows the two from each other.

    padded   a b c .      packed   a b c d e        starts  0 3 5
             d e . .               0 1 2 0 1  places
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from dragoman.shapes import Bool, Float, Int, Tensor


@dataclass(frozen=True)
class Packing:
    """Where the sequences of a packed row are."""

    starts: Int[Tensor, "C"]
    """Of every sequence, and where the last one ends; int32, as kernels want it."""
    places: Int[Tensor, "1 N"]
    """Of every token in its own sequence."""
    rows: Int[Tensor, "1 N"]
    """Which sequence a token belongs to."""
    longest: int
    even: bool = False
    """All sequences are of that length."""

    @classmethod
    def of(cls, lengths: Int[Tensor, "B"], longest: int | None = None) -> "Packing":
        """Of sequences of these lengths, in the host's memory. Some may be empty; `longest` may be more than
        the longest of them has."""
        longest = longest or int(lengths.max())
        starts = torch.zeros(len(lengths) + 1, dtype=torch.int32)
        starts[1:] = lengths.cumsum(0)
        rows = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        places = torch.arange(len(rows)) - starts[rows]
        return cls(starts, places[None], rows[None], longest, bool((lengths == longest).all()))

    @property
    def form(self) -> tuple[int, int, bool]:
        """What a device has to know of it beside the numbers."""
        return len(self.starts), self.longest, self.even

    def moved(self, move: Callable[[Tensor], Tensor]) -> "Packing":
        return replace(self, starts=move(self.starts), places=move(self.places), rows=move(self.rows))

    def padded(self, x: Float[Tensor, "1 H N E"]) -> Float[Tensor, "B H T E"]:
        """Every sequence in a row of its own."""
        if self.even:
            return x[0].unflatten(1, (-1, self.longest)).transpose(0, 1)
        wide = x.new_zeros(len(self.starts) - 1, self.longest, x.size(1), x.size(3))
        return wide.index_put((self.rows[0], self.places[0]), x[0].transpose(0, 1)).transpose(1, 2)

    def packed(self, x: Float[Tensor, "B H T E"]) -> Float[Tensor, "1 H N E"]:
        if self.even:
            return x.transpose(0, 1).flatten(1, 2)[None]
        return x.transpose(1, 2)[self.rows[0], self.places[0]].transpose(0, 1)[None]

    def visible(self) -> Bool[Tensor, "B 1 1 T"] | None:
        """What is no padding in such rows, None where nothing is; an empty one shows one zero, since a
        softmax over nothing is not a number."""
        if self.even:
            return None
        places = torch.arange(self.longest, device=self.starts.device)
        return (places < self.starts.diff().clamp(min=1)[:, None])[:, None, None, :]


@dataclass(frozen=True)
class Mask:
    """`visible` is broadcast over heads and queries; `causal` hides what lies ahead of each query.

    The causal part stays a flag, because fused kernels skip the hidden half where a tensor makes them
    compute it. With a tensor of memory positions longer than the queries, the queries are the last ones.
    """

    visible: Bool[Tensor, "B 1 #Q M"] | None = None
    causal: bool = False
    packing: tuple[Packing, Packing] | None = None
    """Of queries and memory: sequences look at their own positions alone. Then `visible` is None."""

    def dense(self, queries: int, memory: int, device: torch.device) -> Bool[Tensor, "#B 1 #Q M"] | None:
        """The same mask as one tensor, or None where everything may be seen."""
        if not self.causal:
            return self.visible
        ahead = memory - queries
        lower = torch.ones(queries, memory, dtype=torch.bool, device=device).tril(ahead)[None, None]
        return lower if self.visible is None else lower & self.visible


EVERYTHING = Mask()
CAUSAL = Mask(causal=True)


def padding(mask: Bool[Tensor, "B M"]) -> Mask:
    """Hide the padded positions of a memory."""
    if mask.device.type == "cpu" and bool(mask.all()):  # asking a GPU would make the host wait for it
        return EVERYTHING
    return Mask(mask[:, None, None, :])


def packed(queries: Packing, memory: Packing, causal: bool = False) -> Mask:
    """Every sequence of queries looks at its own sequence of the memory."""
    return Mask(causal=causal, packing=(queries, memory))


def lengths(mask: Bool[Tensor, "B M"]) -> Int[Tensor, "B"]:
    """How many positions of each row hold tokens; the last of them stands at this number less one.

    A row without any counts as one position, since sequence kernels know no empty sequence.
    """
    return mask.sum(dim=1).clamp(min=1)
