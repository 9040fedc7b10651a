"""AWD-LSTM (Merity et al. 2018), the language model of ULMFiT (Howard & Ruder 2018).

    source, target ─ embed ─ lstm D→H ─ [ lstm H→H ] ─ lstm H→D ─▶ hidden ─ embeddingᵀ
                   │       │          │              │          │
                 words   inputs     between        between    outputs        dropout, see below

There is no encoder: the source is the beginning of the same sequence, as in `models/gpt.py`, and the state is
that of the layers. The last layer is as wide as the embedding, so that projection and embedding share a
matrix. There is no attention and no residual connection. Dropout is what makes it good:

    weights    single weights between state and cell, for a whole batch (weight drop)
    words      words of the vocabulary, for a whole batch; drawn separately for source and target
    inputs, between, outputs    units, the same at every position of a sequence (variational)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self, cast

import torch
from torch import nn

from dragoman.config import check_shares, check_sizes
from dragoman.models.abilities import Abilities
from dragoman.models.base import EncoderDecoder, Memory, Vocab, join
from dragoman.nn.dropout import SequenceDropout, StackMasks, WordDropout
from dragoman.nn.linear import TokenEmbedding
from dragoman.nn.recurrent import RecurrentStack, RecurrentState
from dragoman.nn.state import rows_of
from dragoman.shapes import Bool, Float, Int, Tensor


@dataclass(frozen=True)
class UlmfitConfig:
    num_layers: int = 3
    model_dim: int = 400  # of the embedding and of the last layer
    hidden_dim: int = 1150  # of the layers between
    embedding_dropout: float = 0.1
    input_dropout: float = 0.4
    dropout: float = 0.25  # between layers
    output_dropout: float = 0.4
    weight_dropout: float = 0.5
    scale_embeddings: bool = True  # not in the paper, whose rate is 30: with Adam it learns much sooner
    tie_embeddings: bool = True
    output_bias: bool = True

    def __post_init__(self) -> None:
        check_sizes(self, ["num_layers"], ["model_dim", "hidden_dim"])
        shares = ("embedding_dropout", "input_dropout", "dropout", "output_dropout", "weight_dropout")
        check_shares(self, *shares)

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            step_gradients=True,
            reads_in_decoder=True,
            continues_source=True,
            carries_state=True,
            separates_dropout=True,
            pooling="concat",
        )


def ulmfit(config: UlmfitConfig, vocab: Vocab) -> EncoderDecoder:
    return join(vocab, UlmfitReader, config, UlmfitDecoder, config)


class UlmfitReader(nn.Module):
    """Embeds the source; the decoder reads it."""

    def __init__(self, config: UlmfitConfig, embedding: TokenEmbedding) -> None:
        super().__init__()
        self.embedding, self.words = embedding, WordDropout(config.embedding_dropout)

    def forward(self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> Memory:
        drawn = self.words.draw(self.embedding.weight)
        return Memory(self.words(self.embedding(src_ids), src_ids, drawn), src_mask)


class UlmfitDecoder(nn.Module):
    def __init__(self, config: UlmfitConfig, embedding: TokenEmbedding, memory_dim: int) -> None:
        super().__init__()
        assert memory_dim == config.model_dim, "source and target are one sequence"
        self.embedding = embedding
        between = [config.hidden_dim] * (config.num_layers - 1)
        layers = nn.ModuleList(
            RecurrentStack("lstm", width, to, 1, weight_dropout=config.weight_dropout)
            for width, to in pairwise([config.model_dim, *between, config.model_dim])
        )
        self.layers = cast(Sequence[RecurrentStack], layers)
        self.words = WordDropout(config.embedding_dropout)
        self.inputs = SequenceDropout(config.input_dropout, held=True)
        self.between = SequenceDropout(config.dropout, held=True)
        self.outputs = SequenceDropout(config.output_dropout, held=True)

    def forward(self, tgt_in: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T D"]:
        return self.twice(tgt_in, memory)[1]

    def twice(
        self, tgt_in: Int[Tensor, "B T"], memory: Memory
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"]]:
        """The output of the last layer before and after dropout."""
        return self.carry(tgt_in, memory, None)[:2]

    def carry(
        self, tgt_in: Int[Tensor, "B T"], memory: Memory, pasts: tuple[RecurrentState, ...] | None
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"], tuple[RecurrentState, ...]]:
        """The same, and the final states. With `pasts` the layers continue from these states instead of
        reading the memory; dropout masks are new. If there are more rows in `pasts` than now, the first ones
        are used."""
        if pasts is None:
            state = self.start(memory)
        else:
            rows = torch.arange(len(tgt_in), device=tgt_in.device)
            state = UlmfitState(tuple(past.rows(rows) for past in pasts), self._draw(len(rows)), beams=1)
        top, pasts = self._go_on(tgt_in, state)
        return top, self.outputs(top, state.masks.outputs), pasts

    def start(self, memory: Memory) -> "UlmfitState":
        masks = self._draw(len(memory.hidden))
        _, pasts = self._read(memory, masks)
        return UlmfitState(pasts, masks, beams=1)

    def step(
        self, last_ids: Int[Tensor, "N"], state: "UlmfitState"
    ) -> tuple[Float[Tensor, "N D"], "UlmfitState"]:
        top, pasts = self._go_on(last_ids[:, None], state)
        return self.outputs(top, state.masks.outputs)[:, 0], replace(state, pasts=pasts)

    def read_memory(self, memory: Memory) -> list[Float[Tensor, "B S _"]]:
        """The vectors of a source without a target: embeddings, and every layer in its own width."""
        masks = self._draw(len(memory.hidden))
        found, _ = self._read(memory, masks)
        return [*found[:-1], self.outputs(found[-1], masks.outputs)]

    def _read(
        self, memory: Memory, masks: "UlmfitMasks"
    ) -> tuple[list[Float[Tensor, "B S _"]], tuple[RecurrentState, ...]]:
        found, pasts = [self.inputs(memory.hidden, masks.inputs)], []
        for layer, between, own in zip(self.layers, masks.between, masks.layers, strict=True):
            fed = self.between(found[-1], between)
            if fed.size(1) == 1:  # every source has its </s>: one piece wide, none is padded
                nothing = fed.new_zeros(1, len(fed), layer.width)
                out, past = layer(fed, RecurrentState(nothing, nothing), own)
            else:
                out, past = layer.read_through(fed, memory.mask, own)
            found.append(out)
            pasts.append(past)
        return found, tuple(pasts)

    def _go_on(
        self, ids: Int[Tensor, "N T"], state: "UlmfitState"
    ) -> tuple[Float[Tensor, "N T D"], tuple[RecurrentState, ...]]:
        masks, pasts = state.masks, []
        x = self.inputs(self.words(self.embedding(ids), ids, masks.words), masks.inputs)
        for layer, past, between, own in zip(
            self.layers, state.pasts, masks.between, masks.layers, strict=True
        ):
            x, past = layer(self.between(x, between), past, own)
            pasts.append(past)
        return x, tuple(pasts)

    def _draw(self, rows: int) -> "UlmfitMasks":
        weight = self.embedding.weight
        widths = [layer.width for layer in self.layers]
        between = [self.between.draw(rows, width, like=weight) for width in widths[:-1]]
        return UlmfitMasks(
            self.words.draw(weight),
            self.inputs.draw(rows, weight.size(1), like=weight),
            (None, *between),
            self.outputs.draw(rows, widths[-1], like=weight),
            tuple(layer.draw(rows) for layer in self.layers),
        )


@dataclass(frozen=True)
class UlmfitMasks:
    """Dropout masks for whole sequences; none outside training."""

    words: Float[Tensor, "V"] | None
    inputs: Float[Tensor, "N D"] | None
    between: tuple[Float[Tensor, "N _"] | None, ...]
    """On the input of each layer; the first has `inputs` instead."""
    outputs: Float[Tensor, "N D"] | None
    layers: tuple[StackMasks, ...]

    def rows(self, rows: Int[Tensor, "R"]) -> "UlmfitMasks":
        def chosen(mask: Tensor | None) -> Tensor | None:
            return None if mask is None else mask.index_select(0, rows)

        return UlmfitMasks(
            self.words,
            chosen(self.inputs),
            tuple(chosen(mask) for mask in self.between),
            chosen(self.outputs),
            tuple(masks.rows(rows) for masks in self.layers),
        )


@dataclass(frozen=True)
class UlmfitState:
    """Beams share nothing: the source is in the recurrent states."""

    pasts: tuple[RecurrentState, ...]
    masks: UlmfitMasks
    beams: int

    def expand(self, k: int) -> Self:
        rows = torch.arange(self.pasts[0].hidden.size(1), device=self.pasts[0].hidden.device)
        return replace(self.select(rows.repeat_interleave(k)), beams=self.beams * k)

    def select(self, order: Int[Tensor, "N"]) -> Self:
        return replace(
            self, pasts=tuple(past.rows(order) for past in self.pasts), masks=self.masks.rows(order)
        )

    def keep(self, sentences: Int[Tensor, "A"]) -> Self:
        return self.select(rows_of(sentences, self.beams))
