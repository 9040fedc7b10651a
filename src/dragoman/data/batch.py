"""Padded batches of id sequences as tensors: the input of models and objectives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dragoman.nn.mask import Packing
from dragoman.shapes import EncoderInput
from dragoman.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

Device = torch.device | str | None
Move = Callable[[Tensor], Tensor]


class Movable:
    """Base of dataclasses that hold tensors, other such dataclasses, and values that stay on the host."""

    def to(self, device: Device) -> Self:
        return self.moved(lambda tensor: tensor.to(device, non_blocking=True))

    def pinned(self) -> Self:
        """The same batch in page-locked memory, which can be copied to a GPU asynchronously."""
        return self.moved(lambda tensor: tensor.pin_memory())

    def copy_(self, other: Self) -> None:
        """Copy the values of a batch whose tensors have the same shapes."""
        found: list[Tensor] = []
        other.moved(lambda tensor: found.append(tensor) or tensor)
        numbers = iter(found)
        self.moved(lambda tensor: tensor.copy_(next(numbers), non_blocking=True))

    def moved(self, move: Move) -> Self:
        changed = {}
        for field in fields(self):  # type: ignore[arg-type]  # all that inherit are dataclasses
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                changed[field.name] = move(value)
            elif isinstance(value, Movable | Packing):
                changed[field.name] = value.moved(move)
        return replace(self, **changed)  # type: ignore[type-var]


IdSequence = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class PieceLinks(Movable):
    """Pieces of a batch that are linked by the word alignments of its pairs."""

    rows: Int[Tensor, "A"]
    tgt: Int[Tensor, "A"]
    """Indices of target pieces, counted from 0 as in `tgt_out`."""
    src: Int[Tensor, "A"]
    weights: Float[Tensor, "A"]
    """Weight of each link. The links of one target piece have equal weights that sum to 1."""


@dataclass(frozen=True)
class PairBatch(Movable):
    """A batch of sentence pairs for teacher forcing.

        source   a b c          src_ids   a b c </s> <pad>
        target   x y            tgt_in    <s> x y            what the decoder reads
                                tgt_out   x y </s>           what it predicts at the same position

    The masks are True where a position holds a token.
    """

    src_ids: EncoderInput
    src_mask: Bool[Tensor, "B S"]
    tgt_in: Int[Tensor, "B T"]
    tgt_out: Int[Tensor, "B T"]
    tgt_mask: Bool[Tensor, "B T"]
    num_tokens: int
    """Number of target tokens, `</s>` included and padding excluded. A summed loss is divided by it."""
    links: PieceLinks | None = None
    """Links for guided alignment."""
    goes_on: bool = False
    """Whether every row continues the same row of the previous batch."""

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
class TextBatch(Movable):
    """A batch of text with pieces to predict; `learning/masked.py` draws it."""

    ids: Int[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]
    segments: Int[Tensor, "B T"]
    asked: Int[Tensor, "A"]
    """Positions of the pieces to predict, counted through the rows."""
    targets: Int[Tensor, "A"]
    follows: Bool[Tensor, "B"] | None
    """Whether the second text of a row follows the first in its source. None for rows with one text."""
    num_tokens: int
    """Number of predictions, several per position included. A summed loss is divided by it."""

    @property
    def shape(self) -> torch.Size:
        return self.ids.shape


@dataclass(frozen=True)
class VectorBatch(Movable):
    """A batch of sequences of real vectors (patches of images or series) with their targets;
    `data/vectors/examples.py` draws it. The first of the P = T + 1 positions belongs to the model."""

    vectors: Float[Tensor, "R T I"]
    mask: Bool[Tensor, "R P"]
    targets: Tensor
    """A label number per row, or the future values of a forecast (R H C)."""
    num_tokens: int
    """Number of targets. A summed loss is divided by it."""
    shift: Float[Tensor, "R 1 C"] | None = None
    """forecast: mean and standard deviation of each window. The model does not see them."""
    scale: Float[Tensor, "R 1 C"] | None = None
    known: Bool[Tensor, "R H C"] | None = None
    """forecast: whether each target is known."""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs of the network."""
        return self.vectors, self.mask

    def restored(self, scores: Float[Tensor, "R F"]) -> Float[Tensor, "R H C Q"]:
        """A forecast scaled back by the mean and standard deviation of its window."""
        return self.scaled(self.unscaled(scores))

    def unscaled(self, scores: Float[Tensor, "R F"]) -> Float[Tensor, "R H C Q"]:
        """The outputs of the network for every number to come."""
        return scores.float().view(*self.targets.shape, -1)

    def scaled(self, said: Float[Tensor, "R H C Q"]) -> Float[Tensor, "R H C Q"]:
        assert self.scale is not None and self.shift is not None, "this batch is of windows"
        return said * self.scale[..., None] + self.shift[..., None]

    @property
    def shape(self) -> torch.Size:
        return self.mask.shape


@dataclass(frozen=True)
class TaskBatch(Movable):
    """A batch of texts with their targets; `data/labelled/layout.py` draws it. An example may take several
    consecutive rows."""

    ids: Int[Tensor, "R T"]
    mask: Bool[Tensor, "R T"]
    segments: Int[Tensor, "R T"]
    targets: Tensor
    """One number per example or per labelled position, or two positions per row. Empty if the targets are
    unknown."""
    asked: Int[Tensor, "A"] | None
    """tag: positions that have a label, counted through the rows."""
    allowed: Bool[Tensor, "R T"] | None
    """span: positions where an answer may begin and end. The first position means no answer."""
    choices: Int[Tensor, "B"] | None
    """choice: number of rows of each example."""
    num_tokens: int
    """Number of targets. A summed loss is divided by it."""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs of the network."""
        return self.ids, self.mask, self.segments

    @property
    def shape(self) -> torch.Size:
        return self.ids.shape


def collate(pairs: Sequence[tuple[IdSequence, IdSequence]], device: Device = None) -> PairBatch:
    """Pad pairs of raw ids (no specials) at the end and add `<s>` and `</s>`."""
    src_ids, src_mask = pad_sources([src for src, _ in pairs])
    targets = [tgt for _, tgt in pairs]
    tgt_out, tgt_mask = pad_sources(targets)
    tgt_in = torch.empty_like(tgt_out)
    tgt_in[:, :1] = BOS_ID
    tgt_in[:, 1:] = tgt_out[:, :-1]  # shifted by one; in shorter rows </s> falls on padding
    tgt_in.masked_fill_(~tgt_mask, PAD_ID)
    num_tokens = sum(map(len, targets)) + len(targets)
    batch = PairBatch(src_ids, src_mask, tgt_in, tgt_out, tgt_mask, num_tokens)
    return batch if device is None else batch.to(device)


def pad_sources(
    sources: Sequence[IdSequence], device: Device = None
) -> tuple[Int[Tensor, "B S"], Bool[Tensor, "B S"]]:
    """Ids followed by `</s>`, padded at the end, and the mask, which is True for tokens."""
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
    """`pad_sources` without `</s>`."""
    ids, ends = _filled(sequences, room=0)
    return torch.from_numpy(ids), torch.from_numpy(ends < 0)


def pad_vectors(rows: Sequence[np.ndarray]) -> tuple[Float[Tensor, "B T I"], Bool[Tensor, "B T"]]:
    """`pad` for sequences of vectors."""
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(int(lengths.max(initial=0)))[None, :] < lengths[:, None]
    vectors = np.zeros((*mask.shape, np.shape(rows[0])[1]), dtype=np.float32)
    vectors[mask] = np.concatenate(rows)
    return torch.from_numpy(vectors), torch.from_numpy(mask)


def _filled(rows: Sequence[IdSequence], room: int) -> tuple[np.ndarray, np.ndarray]:
    """The padded ids (B T), with `room` more positions than the longest row, and the distance of each
    position from the end of its row, negative inside the row."""
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    ends = np.arange(int(lengths.max(initial=0)) + room)[None, :] - lengths[:, None]
    ids = np.full(ends.shape, PAD_ID, dtype=np.int64)
    if lengths.any():
        ids[ends < 0] = np.concatenate([np.asarray(row, dtype=np.int64) for row in rows])
    return ids, ends
