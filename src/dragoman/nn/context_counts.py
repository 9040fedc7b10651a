"""Counts of which piece followed which context: one sparse row for every context that was seen.

    keys      the context of each row as one number, ascending              R
    offsets   where each row's entries begin, and where the last one ends   R + 1
    totals    how often the context was seen                                R
    pieces    what followed it, ascending inside a row                      entries
    counts    how often                                                     entries

A row is a distribution, count / total. Rows are found by bisection and added in ragged blocks, without a
Python loop over rows.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.shapes import Float, Int, Tensor

_ENTRIES_AT_ONCE = 1 << 21
_WAITING = 1 << 22


class CountTable(nn.Module):
    """Rows over a vocabulary of `size` pieces. The length of its tensors depends on the data."""

    keys: Tensor
    offsets: Tensor
    totals: Tensor
    pieces: Tensor
    counts: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        for name in ("keys", "totals", "counts"):
            self.register_buffer(name, torch.empty(0, dtype=torch.long))
        self.register_buffer("offsets", torch.zeros(1, dtype=torch.long))
        self.register_buffer("pieces", torch.empty(0, dtype=torch.int32))

    def __len__(self) -> int:
        return len(self.keys)

    def fill(self, entries: Int[Tensor, "E"], counts: Int[Tensor, "E"]) -> None:
        """Set the contents. An entry is key × size + piece; entries are distinct and ascending."""
        keys, lengths = torch.unique_consecutive(entries // self.size, return_counts=True)
        self.keys, self.counts = keys, counts
        self.offsets = F.pad(lengths.cumsum(0), (1, 0))
        self.pieces = (entries % self.size).int()
        self.totals = torch.zeros_like(keys).index_add_(0, self.rows_of_entries(), counts)

    def make_room(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        """Take the sizes of the tensors that will be copied into it. `name` is its own in the model."""
        for full_name, buffer in self.named_buffers(name, recurse=False):
            if full_name in tensors and tensors[full_name].dim() == 1:
                setattr(self, full_name.rpartition(".")[2], buffer.new_empty(tensors[full_name].shape))

    def is_sound(self) -> bool:
        """Whether this is a valid table: contiguous rows, ascending keys, pieces of the vocabulary."""
        lengths = [len(self.totals), len(self.offsets) - 1, len(self.pieces)]
        if lengths != [len(self.keys), len(self.keys), len(self.counts)] or int(self.offsets[0]):
            return False
        rows_fit = int(self.offsets[-1]) == len(self.counts) and bool((self.offsets.diff() >= 0).all())
        pieces_fit = bool(((self.pieces >= 0) & (self.pieces < self.size)).all())
        counted = bool((self.totals > 0).all()) and bool((self.counts > 0).all())
        return rows_fit and pieces_fit and counted and bool((self.keys.diff() > 0).all())

    def rows_of_entries(self) -> Int[Tensor, "E"]:
        """The row of each entry."""
        rows = torch.arange(len(self.keys), device=self.keys.device)
        return rows.repeat_interleave(self.offsets.diff(), output_size=len(self.counts))

    def find(self, keys: Int[Tensor, "*P"]) -> Int[Tensor, "*P"]:
        """The row of each key, or −1."""
        if not len(self.keys):
            return torch.full_like(keys, -1)
        place = torch.searchsorted(self.keys, keys.contiguous()).clamp(max=len(self.keys) - 1)
        return torch.where(self.keys[place] == keys, place, -1)

    def trust(self, rows: Int[Tensor, "*P"], smoothing: float, dtype: torch.dtype) -> Float[Tensor, "*P"]:
        """λ = total / (total + smoothing × distinct followers) (Witten & Bell 1991 with smoothing 1).

        A row that does not exist has λ = 0.
        """
        if not len(self.keys):
            return torch.zeros_like(rows, dtype=dtype)
        known = rows.clamp(min=0)
        total = self.totals[known].to(dtype)
        distinct = (self.offsets[known + 1] - self.offsets[known]).to(dtype)
        return (total / (total + smoothing * distinct)).masked_fill(rows < 0, 0.0)

    def add_rows(
        self,
        into: Float[Tensor, "C V"],
        where: Int[Tensor, "P"],
        rows: Int[Tensor, "P"],
        weights: Float[Tensor, "P"],
    ) -> None:
        """into[where[i]] += weights[i] · row rows[i], for every i whose row exists. Changes `into`."""
        exist = (rows >= 0).nonzero()[:, 0]
        where, rows, weights = where[exist], rows[exist], weights[exist]
        lengths = self.offsets[rows + 1] - self.offsets[rows]
        ends = lengths.cumsum(0)
        flat, first, done = into.view(-1), 0, 0
        while first < len(rows):
            # as many whole rows as fit, at least one
            last = max(first + 1, int(torch.searchsorted(ends, done + _ENTRIES_AT_ONCE, right=True)))
            part, count = slice(first, last), int(ends[last - 1]) - done
            sizes = lengths[part]
            starts = torch.stack([where[part] * self.size, self.offsets[rows[part]] - (ends[part] - sizes)])
            target, entry = starts.repeat_interleave(sizes, dim=1, output_size=count)
            entry = entry + torch.arange(done, done + count, device=rows.device)
            scale = (weights[part] / self.totals[rows[part]]).repeat_interleave(sizes, output_size=count)
            flat.index_add_(0, target + self.pieces[entry], scale * self.counts[entry])
            first, done = last, done + count


class Tally:
    """Counts numbers in bounded memory: a few million wait at a time, then are sorted and merged.

    Sorted runs are merged when the newer is not much shorter, so every number moves few times.
    """

    def __init__(self) -> None:
        self._waiting: list[Tensor] = []
        self._runs: list[tuple[Tensor, Tensor]] = []

    def add(self, numbers: Int[Tensor, "P"]) -> None:
        self._waiting.append(numbers)
        if sum(map(len, self._waiting)) >= _WAITING:
            self._sort()

    def result(self) -> tuple[Int[Tensor, "E"], Int[Tensor, "E"]]:
        """Every number once, ascending, and how often it was added."""
        self._sort()
        while len(self._runs) > 1:
            self._merge()
        return self._runs[0]

    def _sort(self) -> None:
        numbers = torch.cat(self._waiting) if self._waiting else torch.empty(0, dtype=torch.long)
        self._waiting = []
        self._runs.append(torch.unique(numbers, return_counts=True))
        while len(self._runs) > 1 and 2 * len(self._runs[-1][0]) >= len(self._runs[-2][0]):
            self._merge()

    def _merge(self) -> None:
        (left, left_counts), (right, right_counts) = self._runs.pop(), self._runs.pop()
        device = left.device if len(left) else right.device
        numbers, place = torch.unique(torch.cat([left.to(device), right.to(device)]), return_inverse=True)
        counts = torch.zeros_like(numbers)
        counts.index_add_(0, place, torch.cat([left_counts.to(device), right_counts.to(device)]))
        self._runs.append((numbers, counts))
