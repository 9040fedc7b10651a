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
from dragoman.nn.linear import Projection
from dragoman.nn.state import State, rows_of
from dragoman.shapes import Bool, Float, Int, Tensor
from dragoman.text.tokenizer_file import MARK


@dataclass(frozen=True)
class CopyingState:
    """The state of the decoder and the runs, with one row per beam. The copy source has one row per
    sentence."""

    decoder: State
    source: CopySource
    runs: Int[Tensor, "N S"]
    """How many pieces before each source position were written last."""

    def expand(self, k: int) -> Self:
        return replace(self, decoder=self.decoder.expand(k), runs=self.runs.repeat_interleave(k, dim=0))

    def select(self, order: Int[Tensor, "N"]) -> Self:
        return replace(self, decoder=self.decoder.select(order), runs=self.runs[order])

    def keep(self, sentences: Int[Tensor, "A"]) -> Self:
        rows = rows_of(sentences, len(self.runs) // len(self.source.pieces))
        decoder, source = self.decoder.keep(sentences), self.source.keep(sentences)
        return replace(self, decoder=decoder, source=source, runs=self.runs[rows])


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
        numbers = {name: number for number, name in enumerate(tgt_pieces) if name is not None}

        def number(*names: str) -> int:
            return next((numbers[name] for name in names if name in numbers), NOT_COPIED)

        same = [NOT_COPIED if name is None else number(name) for name in src_pieces]
        other = [NOT_COPIED if name is None else number(*_other_forms(name)) for name in src_pieces]
        if {*same, *other} == {NOT_COPIED}:
            raise UserError(
                "model.copy: no piece of the source is one of the target, so there is nothing to copy; "
                "set it to false"
            )
        self.copy.table.copy_(torch.tensor([same, other]))

    def encode(self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> Memory:
        return replace(super().encode(src_ids, src_mask), ids=src_ids)

    def decode(self, tgt_in: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T V"]:
        source = self._readable(memory)
        return self.copy(self.decoder(tgt_in, memory), source, source.runs(tgt_in))

    def start(self, memory: Memory) -> CopyingState:
        nothing_written = torch.zeros_like(memory.mask, dtype=torch.long)
        return CopyingState(self.decoder.start(memory), self._readable(memory), nothing_written)

    def step(self, last_ids: Int[Tensor, "N"], state: State) -> tuple[Float[Tensor, "N V"], CopyingState]:
        assert isinstance(state, CopyingState)
        hidden, after = self.decoder.step(last_ids, state.decoder)
        source = state.source
        by_sentence = (len(source.pieces), -1)  # A K
        runs = source.next_runs(last_ids.unflatten(0, by_sentence), state.runs.unflatten(0, by_sentence))
        found = self.copy(hidden.unflatten(0, by_sentence), source, runs)
        return found.flatten(0, 1), replace(state, decoder=after, runs=runs.flatten(0, 1))

    def packed(self, batch: PackedPairs) -> Float[Tensor, "1 N V"]:
        encoder, decoder = cast(Any, self.encoder), cast(Any, self.decoder)
        memory = encoder.packed(batch.src_ids, batch.src)
        hidden = decoder.packed(batch.tgt_in, batch.tgt, memory, batch.src)
        return self.copy.packed(hidden, batch.tgt_in, batch.tgt, memory, batch.src_ids, batch.src)

    def _readable(self, memory: Memory) -> CopySource:
        assert memory.ids is not None, "`encode` has added them"
        return self.copy.read(memory.hidden, memory.ids, memory.mask)


def _other_forms(name: str) -> tuple[str, ...]:
    """A piece of a word with its space is one without it, and the other way round."""
    plain = name.strip(MARK)
    return (f"{MARK}{name}", f"{name}{MARK}") if plain == name else (plain,)


def _first_table(vocab: Vocab) -> Int[Tensor, "2 U"]:
    """Initial table, until `match_pieces` replaces it: with a joint vocabulary all pieces but three control
    pieces can be copied, with two vocabularies none."""
    table = torch.full((2, vocab.src_size), NOT_COPIED)
    if vocab.shared:
        table[0] = torch.arange(vocab.src_size)
        table[0, [vocab.pad_id, vocab.bos_id, vocab.eos_id]] = NOT_COPIED
    return table
