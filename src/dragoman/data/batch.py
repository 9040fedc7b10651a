"""Batches of id sequences as tensors, padded or packed: what a model and an objective take."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dragoman.data.movable import Device, Movable
from dragoman.kernels import LONGEST_SEQUENCE, tile_size
from dragoman.nn.mask import Packing
from dragoman.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

IdSequence = Sequence[int] | np.ndarray
NO_TEXT = -100
"""A class that no loss counts."""
_STEP = 128
"""Room for the longest text is a multiple of it."""


@dataclass(frozen=True)
class PieceLinks(Movable):
    """Pieces of a batch that belong together by the word alignments of its pairs."""

    rows: Int[Tensor, "A"]
    tgt: Int[Tensor, "A"]
    """Target pieces, counted from 0 as in `tgt_out`."""
    src: Int[Tensor, "A"]
    weights: Float[Tensor, "A"]
    """Those of a target piece are alike and sum to 1."""


@dataclass(frozen=True)
class PairBatch(Movable):
    """A batch of sentence pairs for teacher forcing.

        source   a b c          src_ids   a b c </s> <pad>
        target   x y            tgt_in    <s> x y            what the decoder reads
                                tgt_out   x y </s>           what it has to say at the same position

    The masks are True where a position holds a token.
    """

    src_ids: Int[Tensor, "B S"]
    src_mask: Bool[Tensor, "B S"]
    tgt_in: Int[Tensor, "B T"]
    tgt_out: Int[Tensor, "B T"]
    tgt_mask: Bool[Tensor, "B T"]
    num_tokens: int
    """Real target tokens, `</s>` included: what a summed loss is divided by."""
    links: PieceLinks | None = None
    """For guided alignment."""
    goes_on: bool = False
    """Every row goes on where the same row of the batch before has ended."""

    @property
    def shape(self) -> torch.Size:
        return self.tgt_in.shape

    @property
    def form(self) -> tuple[int, ...]:
        return *self.src_ids.shape, *self.tgt_in.shape

    @property
    def steady(self) -> bool:
        return self.links is None


@dataclass(frozen=True)
class PackedPairs(Movable):
    """A `PairBatch` without its padding: all sources in one row, and all targets in another.

        sources  a b c, d      src_ids   a b c </s> d </s>
        targets  x y, z        tgt_in    <s> x y <s> z
                               tgt_out   x y </s> z </s>

    Both rows may be filled up with padding to a length that many batches have. The padding is made of
    sequences of its own, which nobody else looks at and which say nothing.
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
        """Of a batch in the host's memory. With a `multiple`, both rows are filled up to the same one of it,
        and the number and room of the sequences to powers of 2: batches come in few shapes."""
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
        """Of the targets with padding."""
        return torch.Size((self.pairs, self.tgt.longest))

    @property
    def form(self) -> tuple[int, ...]:
        """Batches of the same form are the same to a device, but for the numbers in them."""
        src, tgt = self.src, self.tgt
        return self.src_ids.size(1), self.tgt_in.size(1), *src.form, *tgt.form

    @property
    def steady(self) -> bool:
        """Whether what a device does with it is a matter of its form alone: kernels know no longer ones."""
        return max(self.src.longest, self.tgt.longest) <= LONGEST_SEQUENCE


def _filled_up(sides: list[Tensor], fill: list[int], longest: int) -> list[Tensor]:
    """Lengths of sequences with those of the padding, cut into pieces, and with empty ones up to a power of
    2."""
    pieces = [[longest] * (more // longest) + [more % longest] for more in fill]
    usual = 2 * (int(sides[0].sum()) + fill[0]) // longest  # neighbours in length are half as long at least
    count = max(len(sides[0]) + max(map(len, pieces)), usual)
    count = 1 << (count - 1).bit_length()
    found = []
    for side, more in zip(sides, pieces, strict=True):
        empty = count - len(side) - len(more)
        found.append(torch.cat([side, side.new_tensor(more), side.new_zeros(empty)]))
    return found


@dataclass(frozen=True)
class TextBatch(Movable):
    """A batch of text with pieces to be guessed: `data/masked.py` draws it."""

    ids: Int[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]
    segments: Int[Tensor, "B T"]
    asked: Int[Tensor, "A"]
    """Places that are asked for, counted through the rows."""
    targets: Int[Tensor, "A"]
    follows: Bool[Tensor, "B"] | None
    """Whether the second text of a row is what comes after the first; None where there is one text."""
    num_tokens: int
    """Answers that are asked for, of one place perhaps more than one: what a summed loss is divided by."""

    @property
    def shape(self) -> torch.Size:
        return self.ids.shape


@dataclass(frozen=True)
class PackedText(Movable):
    """A `TextBatch` without its padding: its texts one after another in one row. That may be filled up, as
    that of `PackedPairs`, and what is asked for too: padding is no answer."""

    ids: Int[Tensor, "1 N"]
    packing: Packing
    segments: Int[Tensor, "1 N"]
    asked: Int[Tensor, "A"]
    targets: Int[Tensor, "A"]
    firsts: Int[Tensor, "C"]
    """Where the texts begin."""
    other: Int[Tensor, "C"] | None
    """1 where the second text of a row is not what comes after the first, else 0; `NO_TEXT` for padding."""
    num_tokens: int
    texts: int

    @classmethod
    def of(cls, batch: TextBatch, multiple: int = 0) -> "PackedText":
        """Of a batch in the host's memory. With a `multiple`, the row and what is asked for are filled up to
        one, and so is the number of texts: batches come in few shapes."""
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


@dataclass(frozen=True)
class VectorBatch(Movable):
    """A batch of sequences of real vectors, patches of images or moments of series, and their labels."""

    vectors: Float[Tensor, "B T I"]
    mask: Bool[Tensor, "B T"]
    labels: Int[Tensor, "B"]

    @property
    def num_tokens(self) -> int:
        """Labels: what a summed loss is divided by."""
        return len(self.labels)


@dataclass(frozen=True)
class TaskBatch(Movable):
    """A batch of texts and of what is to be said about them: `data/labelled/layout.py` draws it. An example
    may take several rows, which follow each other."""

    ids: Int[Tensor, "R T"]
    mask: Bool[Tensor, "R T"]
    segments: Int[Tensor, "R T"]
    targets: Tensor
    """One number an example, or a place asked for, or two places; empty where nothing is known."""
    asked: Int[Tensor, "A"] | None
    """tag: places that have a label, counted through the rows."""
    allowed: Bool[Tensor, "R T"] | None
    """span: where an answer may begin and end; the first place is that of none."""
    choices: Int[Tensor, "B"] | None
    """choice: rows of each example."""
    num_tokens: int
    """Of targets: what a summed loss is divided by."""

    @property
    def shape(self) -> torch.Size:
        return self.ids.shape


Batch = PairBatch | PackedPairs | TextBatch | PackedText | TaskBatch


def collate(pairs: Sequence[tuple[IdSequence, IdSequence]], device: Device = None) -> PairBatch:
    """Pad pairs of raw ids (no specials) at the end and add `<s>` and `</s>`."""
    src_ids, src_mask = pad_sources([src for src, _ in pairs])
    targets = [tgt for _, tgt in pairs]
    tgt_out, tgt_mask = pad_sources(targets)
    tgt_in = torch.empty_like(tgt_out)
    tgt_in[:, :1] = BOS_ID
    tgt_in[:, 1:] = tgt_out[:, :-1]  # shifted by one; where a row has ended, its </s> falls on padding
    tgt_in.masked_fill_(~tgt_mask, PAD_ID)
    num_tokens = sum(map(len, targets)) + len(targets)
    batch = PairBatch(src_ids, src_mask, tgt_in, tgt_out, tgt_mask, num_tokens)
    return batch if device is None else batch.to(device)


def pad_sources(
    sources: Sequence[IdSequence], device: Device = None
) -> tuple[Int[Tensor, "B S"], Bool[Tensor, "B S"]]:
    """Ids followed by `</s>`, padded at the end; and the mask that is True on the tokens."""
    ids, ends = _filled(sources, room=1)
    ids[ends == 0] = EOS_ID
    padded, mask = torch.from_numpy(ids), torch.from_numpy(ends <= 0)
    if device is None:
        return padded, mask
    return padded.to(device, non_blocking=True), mask.to(device, non_blocking=True)


def unpadded(src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> list[list[int]]:
    """The ids of every row, `</s>` included, without the padding."""
    return [ids[keep].tolist() for ids, keep in zip(src_ids, src_mask, strict=True)]


def pad(sequences: Sequence[IdSequence]) -> tuple[Int[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """As `pad_sources`, without `</s>`."""
    ids, ends = _filled(sequences, room=0)
    return torch.from_numpy(ids), torch.from_numpy(ends < 0)


def _filled(rows: Sequence[IdSequence], room: int) -> tuple[np.ndarray, np.ndarray]:
    """B T: the ids with padding, `room` more places than the longest row has; and how far each place is from
    the end of its row, negative inside."""
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    ends = np.arange(int(lengths.max(initial=0)) + room)[None, :] - lengths[:, None]
    ids = np.full(ends.shape, PAD_ID, dtype=np.int64)
    if lengths.any():
        ids[ends < 0] = np.concatenate([np.asarray(row, dtype=np.int64) for row in rows])
    return ids, ends


def by_length(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Numbers of neighbours in length, longest first, so that too little memory shows at once.

    In each batch n × longest ≤ `batch_tokens`; one that is longer than that is a batch of its own.
    """
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    first = 0
    while first < len(order):
        count = max(1, batch_tokens // lengths[order[first]])
        yield order[first : first + count]
        first += count
