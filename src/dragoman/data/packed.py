"""Batches without padding: the sequences are concatenated (`nn/mask.py`)."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from dragoman.data.batch import Movable, PairBatch, TaskBatch, TextBatch, VectorBatch
from dragoman.kernels import LONGEST_SEQUENCE, tile_size
from dragoman.nn.mask import Packing
from dragoman.text.tokenizer import PAD_ID

NO_TEXT = -100
"""A class that no loss counts."""
_STEP = 128
"""The space for the longest text is a multiple of this."""


@dataclass(frozen=True)
class PackedPairs(Movable):
    """A `PairBatch` without its padding: all sources in one row, and all targets in another.

        sources  a b c, d      src_ids   a b c </s> d </s>
        targets  x y, z        tgt_in    <s> x y <s> z
                               tgt_out   x y </s> z </s>

    Both rows may be padded to a length that many batches share. The padding forms separate sequences, which
    no other sequence attends to and which contribute no loss.
    """

    src_ids: Int[Tensor, "1 M"]
    src: Packing
    tgt_in: Int[Tensor, "1 N"]
    tgt_out: Int[Tensor, "1 N"]
    tgt: Packing
    num_tokens: int
    pairs: int

    @classmethod
    def of(cls, batch: PairBatch, multiple: int = 0) -> "PackedPairs":
        """Pack a batch in host memory. With `multiple`, both rows are padded to the same multiple of it, and
        the number and space of the sequences to powers of 2, so that batches have few shapes."""
        sides = [batch.src_mask.sum(dim=1), batch.tgt_mask.sum(dim=1)]
        longest = [int(side.max()) for side in sides]
        fill = [0, 0]
        if multiple:
            longest = [tile_size(max(longest))] * 2
            used = [int(side.sum()) for side in sides]
            length = -(-max(used) // multiple) * multiple
            fill = [length - here for here in used]
            sides = _filled_up(sides, fill, longest[0])

        def row(ids: Tensor, mask: Tensor, more: int) -> Tensor:
            return torch.cat([ids[mask], ids.new_full((more,), PAD_ID)])[None]

        return cls(
            src_ids=row(batch.src_ids, batch.src_mask, fill[0]),
            src=Packing.of(sides[0], longest[0]),
            tgt_in=row(batch.tgt_in, batch.tgt_mask, fill[1]),
            tgt_out=row(batch.tgt_out, batch.tgt_mask, fill[1]),
            tgt=Packing.of(sides[1], longest[1]),
            num_tokens=batch.num_tokens,
            pairs=len(batch.src_ids),
        )

    @property
    def shape(self) -> torch.Size:
        """Shape of the targets with padding."""
        return torch.Size((self.pairs, self.tgt.longest))

    @property
    def form(self) -> tuple[int, ...]:
        """Batches of the same form differ for a device only in their values."""
        src, tgt = self.src, self.tgt
        return self.src_ids.size(1), self.tgt_in.size(1), *src.form, *tgt.form

    @property
    def steady(self) -> bool:
        """Whether the work on the device depends on the form alone. Longer sequences than the kernels support
        do not."""
        return max(self.src.longest, self.tgt.longest) <= LONGEST_SEQUENCE


def _filled_up(sides: list[Tensor], fill: list[int], longest: int) -> list[Tensor]:
    """The lengths of the sequences, followed by those of the padding, cut into pieces, and zeros up to a
    power of 2."""
    pieces = [[longest] * (more // longest) + [more % longest] for more in fill]
    usual = 2 * (int(sides[0].sum()) + fill[0]) // longest  # neighbouring lengths are at least half as long
    count = max(len(sides[0]) + max(map(len, pieces)), usual)
    count = 1 << (count - 1).bit_length()
    found = []
    for side, more in zip(sides, pieces, strict=True):
        empty = count - len(side) - len(more)
        found.append(torch.cat([side, side.new_tensor(more), side.new_zeros(empty)]))
    return found


@dataclass(frozen=True)
class PackedText(Movable):
    """A `TextBatch` without its padding: its texts are concatenated into one row. The row and the prediction
    positions may be padded as in `PackedPairs`; padding is never a target."""

    ids: Int[Tensor, "1 N"]
    packing: Packing
    segments: Int[Tensor, "1 N"]
    asked: Int[Tensor, "A"]
    targets: Int[Tensor, "A"]
    firsts: Int[Tensor, "C"]
    """Start of each text."""
    other: Int[Tensor, "C"] | None
    """1 if the second text of a row does not follow the first in its source, else 0; `NO_TEXT` for
    padding."""
    num_tokens: int
    texts: int

    @classmethod
    def of(cls, batch: TextBatch, multiple: int = 0) -> "PackedText":
        """Pack a batch in host memory. With `multiple`, the row, the prediction positions and the number of
        texts are padded, so that batches have few shapes."""
        mask, count = batch.mask, len(batch.ids)
        lengths = mask.sum(dim=1)
        used, longest = int(lengths.sum()), int(lengths.max())
        more = -used % multiple if multiple else 0
        if multiple and (more or int(lengths.min()) < longest):
            longest = -(-longest // _STEP) * _STEP
            parts = [longest] * (more // longest) + [more % longest]
            parts += [0] * (multiple // longest + 1 - len(parts))
            lengths = torch.cat([lengths, lengths.new_tensor(parts)])
        packing = Packing.of(lengths, longest)
        asked = (mask.flatten().cumsum(0) - 1)[batch.asked]
        unasked = -len(asked) % multiple if multiple else 0
        empty = len(lengths) - count

        def filled(values: Tensor, by: int, value: int) -> Tensor:
            return torch.cat([values, values.new_full((by,), value)])

        follows = batch.follows
        return cls(
            ids=filled(batch.ids[mask], more, PAD_ID)[None],
            packing=packing,
            segments=filled(batch.segments[mask], more, 0)[None],
            asked=filled(asked, unasked, 0),
            targets=filled(batch.targets, unasked, PAD_ID),
            firsts=packing.starts[:-1].clamp(max=used + more - 1).long(),
            other=None if follows is None else filled((~follows).long(), empty, NO_TEXT),
            num_tokens=batch.num_tokens,
            texts=count,
        )

    @property
    def shape(self) -> torch.Size:
        return torch.Size((self.texts, self.packing.longest))

    @property
    def form(self) -> tuple[int, ...]:
        return self.ids.size(1), len(self.asked), *self.packing.form

    @property
    def steady(self) -> bool:
        return True


Batch = PairBatch | PackedPairs | TextBatch | PackedText | TaskBatch | VectorBatch
"""All batch types that training accepts."""
