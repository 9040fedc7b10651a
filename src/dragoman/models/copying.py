"""An encoder-decoder that can copy from its source (`nn/copying.py`), whatever its halves are.

    encoder ─▶ memory and the source's pieces ─┐
    decoder ─▶ hidden ──────────────────── CopyHead ─▶ log p over the vocabulary

What other models give to be projected is log p here, and `project` leaves it as it is. The state of the
decoder carries what can be copied along.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import torch

from dragoman.data.packed import PackedPairs
from dragoman.errors import UserError
from dragoman.models.abilities import Abilities
from dragoman.models.base import Decoder, Encoder, EncoderDecoder, Memory, Vocab
from dragoman.nn.copying import NOT_COPIED, CopyHead, CopySource
from dragoman.nn.embedding import Projection
from dragoman.nn.state import State
from dragoman.shapes import Bool, Float, Int, Tensor


@dataclass(frozen=True)
class CopyingState:
    """The state of the decoder, with a row a beam, and what can be copied, with a row a sentence."""

    decoder: State
    source: CopySource

    def expand(self, k: int) -> Self:
        return replace(self, decoder=self.decoder.expand(k))

    def select(self, order: Int[Tensor, "N"]) -> Self:
        return replace(self, decoder=self.decoder.select(order))

    def keep(self, sentences: Int[Tensor, "A"]) -> Self:
        return replace(self, decoder=self.decoder.keep(sentences), source=self.source.keep(sentences))


class CopyingEncoderDecoder(EncoderDecoder):
    def __init__(
        self,
        vocab: Vocab,
        encoder: Encoder,
        decoder: Decoder,
        projection: Projection,
        widths: tuple[int, int],
        abilities: Abilities,
    ) -> None:
        """`widths` are those of the decoder and of the memory."""
        super().__init__(vocab, encoder, decoder, None, abilities)
        self.copy = CopyHead(projection, *widths, _first_table(vocab))

    def match_pieces(self, src_pieces: Sequence[str | None], tgt_pieces: Sequence[str | None]) -> None:
        """Say which pieces of the source are pieces of the target, by their names; None is a control piece,
        which is never copied."""
        if not self.copy.match(src_pieces, tgt_pieces):
            raise UserError(
                "model.copy: no piece of the source is one of the target, so there is nothing to copy; "
                "set it to false"
            )

    def encode(self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> Memory:
        return replace(super().encode(src_ids, src_mask), ids=src_ids)

    def decode(self, tgt_in: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T V"]:
        return self.copy(self.decoder(tgt_in, memory), self._readable(memory))

    def start(self, memory: Memory) -> CopyingState:
        return CopyingState(self.decoder.start(memory), self._readable(memory))

    def step(self, last_ids: Int[Tensor, "N"], state: State) -> tuple[Float[Tensor, "N V"], CopyingState]:
        assert isinstance(state, CopyingState)
        hidden, after = self.decoder.step(last_ids, state.decoder)
        by_sentence = hidden.unflatten(0, (len(state.source.pieces), -1))  # A K D
        return self.copy(by_sentence, state.source).flatten(0, 1), replace(state, decoder=after)

    def packed(self, batch: PackedPairs) -> Float[Tensor, "1 N V"]:
        encoder, decoder = cast(Any, self.encoder), cast(Any, self.decoder)
        memory = encoder.packed(batch.src_ids, batch.src)
        hidden = decoder.packed(batch.tgt_in, batch.tgt, memory, batch.src)
        return self.copy.packed(hidden, batch.tgt, memory, batch.src_ids, batch.src)

    def _readable(self, memory: Memory) -> CopySource:
        assert memory.ids is not None, "`encode` has added them"
        return self.copy.read(memory.hidden, memory.ids, memory.mask)


def _first_table(vocab: Vocab) -> Int[Tensor, "U"]:
    """Until `match_pieces` knows better: with a joint vocabulary all but three control pieces can be copied,
    with two vocabularies nothing."""
    if not vocab.shared:
        return torch.full((vocab.src_size,), NOT_COPIED)
    table = torch.arange(vocab.src_size)
    table[[vocab.pad_id, vocab.bos_id, vocab.eos_id]] = NOT_COPIED
    return table
