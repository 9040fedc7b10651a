"""Recurrent encoder-decoders, from the single context vector to attention in both classic wirings.

    source ─ embed ─ [ recurrent layer, one or both directions ]×L ─▶ memory h
                                                       final states ─ bridge: tanh(W ·) ─▶ s₀

    none       cᵢ = the encoder's final states, one vector for the whole sentence        Cho et al. 2014
               with context once: no cᵢ, s₀ is all that the decoder gets           Sutskever et al. 2014
    bahdanau   cᵢ = attention(sᵢ₋₁, h)   sᵢ = f(sᵢ₋₁, [yᵢ₋₁; cᵢ])                        Bahdanau et al. 2015
               out = tanh(W [sᵢ; cᵢ; yᵢ₋₁])                   both of these
    luong      sᵢ = f(sᵢ₋₁, [yᵢ₋₁; outᵢ₋₁])   cᵢ = attention(sᵢ, h)                      Luong et al. 2015
               out = tanh(W [cᵢ; sᵢ])                         outᵢ₋₁ only with input feeding

If no input of the decoder depends on an output (`none`; `luong` without input feeding), training computes all
positions at once. In a deep decoder the context is input of the first layer, and Bahdanau's query is the
state of the last.

Dropout is on the embeddings, between layers, on the output and, at another rate, on the memory: with a new
mask at every position or, with `variational_dropout`, with one for the whole sequence. Such masks are drawn
in `start` and are part of the state.
"""

from dataclasses import dataclass, replace
from typing import Literal, Self

import torch
from torch import nn

from dragoman.config import check_shares, check_sizes
from dragoman.errors import UserError
from dragoman.models.abilities import Abilities
from dragoman.models.base import EncoderDecoder, Memory, Vocab, join
from dragoman.nn.dropout import SequenceDropout, StackMasks, WordDropout
from dragoman.nn.linear import TokenEmbedding, xavier_linear
from dragoman.nn.mask import lengths
from dragoman.nn.recurrent import Cell, RecurrentStack, RecurrentState
from dragoman.nn.scores import PreparedMemory, ScoredAttention, check_score, make_score
from dragoman.nn.state import rows_of
from dragoman.shapes import Bool, Float, Int, Tensor

Wiring = Literal["bahdanau", "luong"]
Context = Literal["every", "once"]


@dataclass(frozen=True)
class RnnConfig:
    cell: Cell = "lstm"
    num_layers: int = 1
    num_decoder_layers: int | None = None  # as many as in the encoder
    model_dim: int = 256
    bidirectional: bool = True  # the encoder; each direction has half of model_dim
    attention: str = "additive"  # none, or a name of `nn/scores.py`
    wiring: Wiring = "bahdanau"
    input_feeding: bool = False
    context: Context = "every"  # without attention: the vector at every step, or in the first state alone
    attention_dim: int | None = None  # inside concat and additive; model_dim
    max_positions: int = 512  # for location
    dropout: float = 0.2
    variational_dropout: bool = False  # the masks of dropout are held for a whole sequence
    memory_dropout: float = 0.0  # on what the encoder hands over
    embedding_dropout: float = 0.0  # whole words of the vocabulary
    recurrent_dropout: float = 0.0  # units of the state on its way back into the cell
    weight_dropout: float = 0.0  # single weights that the state meets there
    scale_embeddings: bool = True
    tie_embeddings: bool = True  # one matrix for projection, target and, with a joint vocabulary, source
    output_bias: bool = False
    copy: bool = False  # pieces of the source can be copied (`nn/copying.py`)

    def __post_init__(self) -> None:
        depths, widths = ["num_layers", "num_decoder_layers"], ["model_dim", "attention_dim"]
        check_sizes(self, depths, widths, places=["max_positions"])
        shares = ("dropout", "memory_dropout", "embedding_dropout", "recurrent_dropout", "weight_dropout")
        check_shares(self, *shares)
        if self.bidirectional and self.model_dim % 2:
            raise UserError(f"model_dim: two directions need an even width, found {self.model_dim}")
        if self.wiring == "luong" and self.attention == "none":
            raise UserError("wiring: luong needs attention; choose a score for it, or leave wiring out")
        if self.input_feeding and self.wiring != "luong":
            raise UserError(f"input_feeding: belongs to the wiring luong, not to {self.wiring}")
        if self.context == "once" and self.attention != "none":
            raise UserError("context: once is for attention none; attention looks at every step")
        check_score(self.attention, self.attention_dim, others=("none",))

    @property
    def abilities(self) -> Abilities:
        return Abilities(step_gradients=True, copies=self.copy, max_length=self.max_positions)


def rnn(config: RnnConfig, vocab: Vocab) -> EncoderDecoder:
    """Assemble the whole model."""
    return join(vocab, RnnEncoder, config, RnnDecoder, config)


class RnnEncoder(nn.Module):
    def __init__(self, config: RnnConfig, embedding: TokenEmbedding) -> None:
        super().__init__()
        self.embedding = embedding
        dim, self.bidirectional = config.model_dim, config.bidirectional
        self.stack = _stack(config, dim, config.num_layers, config.bidirectional)
        self.words = WordDropout(config.embedding_dropout)
        self.inputs = SequenceDropout(config.dropout, config.variational_dropout)
        self.memory = SequenceDropout(config.memory_dropout, config.variational_dropout)

    def forward(self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> Memory:
        hidden = self.read_layers(src_ids, src_mask)[-1]
        return Memory(hidden, src_mask, final_states(hidden, src_mask, self.bidirectional))

    def read_layers(
        self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]
    ) -> list[Float[Tensor, "B S D"]]:
        """The embeddings and the last layer; the kernels do not return the layers between."""
        weight = self.embedding.weight
        x = self.words(self.embedding(src_ids), src_ids, self.words.draw(weight))
        x = self.inputs(x, self.inputs.draw(len(src_ids), weight.size(1), like=weight))
        hidden = self.stack.read(x, src_mask)
        return [x, self.memory(hidden, self.memory.draw(len(src_ids), weight.size(1), like=weight))]


class SingleContext(nn.Module):
    """No attention: every query gets the final state of the encoder, or with `dim` 0 nothing."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def prepare(self, summary: Float[Tensor, "B D"]) -> PreparedMemory:
        values = summary[:, None, : self.dim]  # B 1 D
        return PreparedMemory(values[:, :, :0], values, values.new_ones(values.shape[:2], dtype=torch.bool))

    def forward(self, query: Float[Tensor, "B Q D"], memory: PreparedMemory) -> Float[Tensor, "B Q G"]:
        return memory.values.expand(-1, query.size(1), -1)


class RnnDecoder(nn.Module):
    def __init__(self, config: RnnConfig, embedding: TokenEmbedding, memory_dim: int) -> None:
        super().__init__()
        self.embedding = embedding
        dim, self.num_layers = config.model_dim, config.num_decoder_layers or config.num_layers
        self.words = WordDropout(config.embedding_dropout)
        self.inputs = SequenceDropout(config.dropout, config.variational_dropout)
        self.outputs = SequenceDropout(config.dropout, config.variational_dropout)
        self.luong, self.input_feeding = config.wiring == "luong", config.input_feeding
        self.at_once = config.attention == "none" or (self.luong and not config.input_feeding)
        context_dim = 0 if config.context == "once" else memory_dim
        if config.attention == "none":
            self.attention = SingleContext(context_dim)
        else:
            inner = config.attention_dim or dim
            self.attention = ScoredAttention(
                make_score(config.attention, dim, memory_dim, inner, config.max_positions)
            )
        self.parts = 2 if config.cell == "lstm" else 1  # an LSTM's state is hidden and cell
        self.bridge = xavier_linear(memory_dim, [dim] * (self.parts * self.num_layers))
        # Beside a word the first layer reads the context, or with input feeding the last output.
        self.rest_dim = context_dim if not self.luong else dim if config.input_feeding else 0
        self.stack = _stack(config, dim + self.rest_dim, self.num_layers)
        self.readout = xavier_linear(context_dim + (1 if self.luong else 2) * dim, [dim])

    def forward(self, tgt_in: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T D"]:
        state = self.start(memory)
        embedded = self._embed(tgt_in, state)
        if self.at_once:
            out = self._all(embedded, state)
        elif self.input_feeding:
            out = self._one_by_one(embedded, state)
        else:  # no output is waited for, so that they can be read out together
            tops, contexts = [], []
            for seen in self.stack.ahead(embedded).unbind(dim=1):
                top, context, state = self._next(seen, state)
                tops.append(top)
                contexts.append(context)
            out = self._read_out(torch.stack(tops, dim=1), torch.stack(contexts, dim=1), embedded)
        return self.outputs(out, state.masks.outputs)

    def start(self, memory: Memory) -> "RnnState":
        summary = memory.summary
        first = torch.tanh(self.bridge(summary)).unflatten(-1, (self.parts, self.num_layers, -1))  # B P L D
        hidden, *cell = first.permute(1, 2, 0, 3).contiguous()  # each L B D
        if isinstance(self.attention, SingleContext):
            prepared = self.attention.prepare(summary)
        else:
            prepared = self.attention.prepare(memory.hidden, memory.mask)
        fed = hidden[0].new_zeros(len(summary), hidden.size(2) if self.input_feeding else 0)
        recurrent = RecurrentState(hidden, cell[0] if cell else None)
        masks = self._draw(len(summary))
        weight = self.stack.for_rest(self.rest_dim, masks.stack)
        return RnnState(recurrent, fed, prepared, weight, masks, beams=1)

    def _draw(self, rows: int) -> "RnnMasks":
        weight = self.embedding.weight
        return RnnMasks(
            self.words.draw(weight),
            self.inputs.draw(rows, weight.size(1), like=weight),
            self.outputs.draw(rows, weight.size(1), like=weight),
            self.stack.draw(rows),
        )

    def step(self, last_ids: Int[Tensor, "N"], state: "RnnState") -> tuple[Float[Tensor, "N D"], "RnnState"]:
        embedded = self._embed(last_ids[:, None], state)
        top, context, state = self._next(self.stack.ahead(embedded[:, 0]), state)
        out = self._read_out(top[:, None], context[:, None], embedded)
        state = replace(state, fed=out[:, 0]) if self.input_feeding else state
        return self.outputs(out, state.masks.outputs)[:, 0], state

    def _embed(self, ids: Int[Tensor, "N T"], state: "RnnState") -> Float[Tensor, "N T D"]:
        return self.inputs(self.words(self.embedding(ids), ids, state.masks.words), state.masks.inputs)

    def _all(self, embedded: Float[Tensor, "N T D"], state: "RnnState") -> Float[Tensor, "N T D"]:
        """All positions by the sequence kernel, where no input waits for an output."""
        if self.luong:
            top, _ = self.stack(embedded, state.recurrent, state.masks.stack)
            return self._read_out(top, self._look(top, state), embedded)
        context = self._look(embedded, state)  # without attention it is the same for any query
        fed = torch.cat([embedded, context], dim=-1)
        top, _ = self.stack(fed, state.recurrent, state.masks.stack)
        return self._read_out(top, context, embedded)

    def _one_by_one(self, embedded: Float[Tensor, "N T D"], state: "RnnState") -> Float[Tensor, "N T D"]:
        outs = []
        for seen in self.stack.ahead(embedded).unbind(dim=1):
            top, context, state = self._next(seen, state)
            out = self._read_out(top, context, None)
            state = replace(state, fed=out)
            outs.append(out)
        return torch.stack(outs, dim=1)

    def _next(
        self, seen: Float[Tensor, "N G"], state: "RnnState"
    ) -> tuple[Float[Tensor, "N D"], Float[Tensor, "N M"], "RnnState"]:
        """The recurrent output and the context of one further position; `seen` is its word in the gates."""
        if self.luong:
            top, recurrent = self._advance(seen, state.fed, state)
            context = self._look(top[:, None], state)[:, 0]
        else:
            context = self._look(state.recurrent.hidden[-1][:, None], state)[:, 0]
            top, recurrent = self._advance(seen, context, state)
        return top, context, replace(state, recurrent=recurrent)

    def _advance(
        self, seen: Float[Tensor, "N G"], rest: Float[Tensor, "N R"], state: "RnnState"
    ) -> tuple[Float[Tensor, "N D"], RecurrentState]:
        return self.stack.advance(seen, rest, state.weight, state.recurrent, state.masks.stack)

    def _read_out(
        self,
        top: Float[Tensor, "*B D"],
        context: Float[Tensor, "*B M"],
        embedded: Float[Tensor, "*B D"] | None,
    ) -> Float[Tensor, "*B D"]:
        parts = [context, top] if self.luong else [top, context, embedded]
        return torch.tanh(self.readout(torch.cat([part for part in parts if part is not None], dim=-1)))

    def _look(self, query: Float[Tensor, "N T D"], state: "RnnState") -> Float[Tensor, "N T G"]:
        # The beams of a sentence ask its one memory as if they were so many positions: B K·T D, not N T D.
        rows = query.reshape(len(query) // state.beams, -1, query.size(-1))
        return self.attention(rows, state.memory).reshape(*query.shape[:2], -1)


@dataclass(frozen=True)
class RnnMasks:
    """Dropout masks that are fixed for whole sequences; empty outside training. Words and weights are dropped
    for the whole batch, units per sequence."""

    words: Float[Tensor, "V"] | None
    inputs: Float[Tensor, "N D"] | None
    outputs: Float[Tensor, "N D"] | None
    stack: StackMasks

    def rows(self, rows: Int[Tensor, "R"]) -> "RnnMasks":
        inputs, outputs = (
            None if mask is None else mask.index_select(0, rows) for mask in (self.inputs, self.outputs)
        )
        return RnnMasks(self.words, inputs, outputs, self.stack.rows(rows))


@dataclass(frozen=True)
class RnnState:
    """The memory has one row per sentence, shared by its beams; the past and its masks have one row per
    beam."""

    recurrent: RecurrentState
    fed: Float[Tensor, "N R"]  # the last output, where it is part of the next input; else of no width
    memory: PreparedMemory
    weight: Float[Tensor, "G J"]  # see RecurrentStack.for_rest
    masks: RnnMasks
    beams: int

    def expand(self, k: int) -> Self:
        rows = torch.arange(self.recurrent.hidden.size(1), device=self.recurrent.hidden.device)
        return replace(self._rows(rows.repeat_interleave(k)), beams=self.beams * k)

    def select(self, order: Int[Tensor, "N"]) -> Self:
        return self._rows(order)

    def keep(self, sentences: Int[Tensor, "A"]) -> Self:
        return replace(self._rows(rows_of(sentences, self.beams)), memory=self.memory.keep(sentences))

    def _rows(self, rows: Int[Tensor, "R"]) -> Self:
        fed = self.fed.index_select(0, rows)
        return replace(self, recurrent=self.recurrent.rows(rows), fed=fed, masks=self.masks.rows(rows))


def _stack(config: RnnConfig, in_dim: int, num_layers: int, bidirectional: bool = False) -> RecurrentStack:
    return RecurrentStack(
        config.cell,
        in_dim,
        config.model_dim,
        num_layers,
        config.dropout,
        bidirectional,
        variational=config.variational_dropout,
        recurrent_dropout=config.recurrent_dropout,
        weight_dropout=config.weight_dropout,
    )


def final_states(
    hidden: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], bidirectional: bool
) -> Float[Tensor, "B D"]:
    """Left to right it ended at the last token; right to left, which is the second half of the width, at
    the first."""
    rows = torch.arange(len(hidden), device=hidden.device)
    last = hidden[rows, lengths(mask) - 1]
    if not bidirectional:
        return last
    half = hidden.size(-1) // 2
    return torch.cat([last[:, :half], hidden[:, 0, half:]], dim=-1)
