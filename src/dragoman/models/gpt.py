"""GPT (Radford et al. 2018) and GPT-2 (Radford et al. 2019): a decoder and nothing else.

    source, target ─ embed ─ + learnt positions ─ [ masked self-attention ─ feed-forward ]×L ─▶ hidden

GPT has its norms after each sublayer, GPT-2 before each and one more at the end. There is no encoder: the
source is the beginning of the same sequence.

    training    x₁ … x_S y₁ … y_T      one pass over both; the outputs at y are used
    search      start: the keys and values of x₁ … x_S, once; step: those of one more y

For a language model the source is one piece, `</s>`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.models.abilities import Abilities
from dragoman.models.base import EncoderDecoder, Memory, Tying, Vocab, join
from dragoman.models.layer_stack import StackConfig, gpt_weights, stack
from dragoman.nn.dropout import dropout
from dragoman.nn.layer import Activation, EncoderLayer, all_layers, read_through
from dragoman.nn.linear import TokenEmbedding
from dragoman.nn.mask import CAUSAL, EVERYTHING, Mask, lengths, padding
from dragoman.nn.norm import NormPlace, make_norm, residual_stream
from dragoman.nn.positions import UNRELATED, LearnedPositions
from dragoman.nn.state import KeyValueCache, Moves, rows_of
from dragoman.shapes import Bool, Float, Int, Tensor


@dataclass(frozen=True)
class GptConfig(StackConfig):
    norm: NormPlace = "pre"  # GPT-2; post is GPT
    norm_eps: float = 1e-5
    activation: Activation = "gelu_tanh"
    max_positions: int = 1024
    tie_embeddings: Tying = True
    output_bias: bool = False
    silent_bos: bool = False  # <s> takes no part in the softmax
    silent_pad: bool = False  # nor does <pad>

    @property
    def scale_embeddings(self) -> bool:
        return False

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            graph_capture=True,
            reads_in_decoder=True,
            continues_source=True,
            pooling="last",
            block_marks=1,
            max_length=self.max_positions,
        )


def gpt(config: GptConfig, vocab: Vocab) -> EncoderDecoder:
    model = join(vocab, GptReader, config, GptDecoder, config)
    gpt_weights(model, config.num_layers)
    return model


class GptReader(nn.Module):
    """Embeds the source; the decoder reads it."""

    def __init__(self, config: object, embedding: TokenEmbedding) -> None:  # noqa: ARG002
        super().__init__()
        self.embedding = embedding

    def forward(self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> Memory:
        return Memory(self.embedding(src_ids), src_mask)


class GptDecoder(nn.Module):
    def __init__(self, config: GptConfig, embedding: TokenEmbedding, memory_dim: int) -> None:
        super().__init__()
        assert memory_dim == config.model_dim, "source and target are one sequence"
        self.embedding = embedding
        self.positions = LearnedPositions(config.max_positions, config.model_dim)
        self.layers = cast(Sequence[EncoderLayer], stack(config, config.norm))
        self.norm_place: NormPlace = config.norm
        pre = config.norm == "pre"
        self.final_norm = make_norm(config.model_dim, "layer", config.norm_eps) if pre else nn.Identity()
        self.dropout = config.dropout

    def forward(self, tgt_in: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T D"]:
        src, width = memory.hidden.size(1), tgt_in.size(1)
        x = torch.cat([memory.hidden, self.embedding(tgt_in)], dim=1)  # B S+T D
        places = None if _unpadded(memory.mask) else positions_of_tokens(memory, width)
        x = residual_stream(self._placed(x, places), self.norm_place)
        mask = _looking_back(memory.mask, width)
        return read_through(self.layers, x, mask, UNRELATED, self.final_norm)[:, src:]  # B T D

    def read_memory(self, memory: Memory) -> list[Float[Tensor, "B S D"]]:
        """The vectors of every layer for a source without a target."""
        x, mask = self._placed(memory.hidden, positions_of_tokens(memory, 0)), _looking_back(memory.mask, 0)
        return all_layers(self.layers, x, mask, UNRELATED, self.final_norm)

    def start(self, memory: Memory) -> "GptState":
        x, mask = self._placed(memory.hidden, positions_of_tokens(memory, 0)), _looking_back(memory.mask, 0)
        return GptState.after(self.layers, x, mask, memory)

    def step(self, last_ids: Int[Tensor, "N"], state: "GptState") -> tuple[Float[Tensor, "N D"], "GptState"]:
        x = self._placed(self.embedding(last_ids[:, None]), state.places)  # N 1 D
        x, pasts = step_through(self.layers, x, state.pasts, state.mask())
        return self.final_norm(x)[:, 0], replace(state, pasts=pasts, position=state.position + 1)

    def _placed(
        self, x: Float[Tensor, "B T D"], places: Int[Tensor, "#B T"] | None
    ) -> Float[Tensor, "B T D"]:
        """Add the given positions, or positions from 0 on."""
        x = self.positions(x) if places is None else self.positions.at(x, places)
        return dropout(x, self.dropout, self.training)


@dataclass(frozen=True)
class GptState:
    pasts: tuple[KeyValueCache, ...]
    """Per layer: keys and values of the padded source, then of the target."""
    sources: Int[Tensor, "B"]
    """Lengths of the sources."""
    source_mask: Bool[Tensor, "B S"] | None
    """None if nothing is padded."""
    beams: int
    position: int

    @classmethod
    def after(
        cls, layers: Iterable[EncoderLayer], x: Float[Tensor, "B S D"], mask: Mask, memory: Memory
    ) -> "GptState":
        """The state after the source, which is read at once under its own mask."""
        pasts = []
        for layer in layers:
            begun = layer.self_attention.start(len(x), like=x)
            x, past = layer.step(x, begun, mask, UNRELATED)
            pasts.append(past)
        padded = mask.visible is not None
        return cls(tuple(pasts), lengths(memory.mask), memory.mask if padded else None, 1, 0)

    @property
    def places(self) -> Int[Tensor, "N 1"]:
        """The position of the next piece: after the source without its padding."""
        return (self.sources + self.position).repeat_interleave(self.beams)[:, None]

    def mask(self, pieces: int = 1) -> Mask:
        """The mask of the next pieces: everything before them except the padding of the source."""
        causal = pieces > 1
        if self.source_mask is None:
            return CAUSAL if causal else EVERYTHING
        rows = self.source_mask.repeat_interleave(self.beams, dim=0)
        return Mask(F.pad(rows, (0, self.position + pieces), value=True)[:, None, None], causal)

    def expand(self, k: int) -> Self:
        return replace(self, pasts=tuple(past.expand(k) for past in self.pasts), beams=self.beams * k)

    def select(self, order: Int[Tensor, "N"]) -> Self:
        moves = Moves.of(order)
        return replace(self, pasts=tuple(past.move(moves) for past in self.pasts))

    def keep(self, sentences: Int[Tensor, "A"]) -> Self:
        rows = rows_of(sentences, self.beams)
        mask = None if self.source_mask is None else self.source_mask[sentences]
        pasts = tuple(past.keep_rows(rows) for past in self.pasts)
        return replace(self, pasts=pasts, sources=self.sources[sentences], source_mask=mask)


def step_through(
    layers: Iterable[EncoderLayer],
    x: Float[Tensor, "N Q D"],
    pasts: tuple[KeyValueCache, ...],
    mask: Mask,
) -> tuple[Float[Tensor, "N Q D"], tuple[KeyValueCache, ...]]:
    """Further positions through all layers, and the longer caches."""
    longer = []
    for layer, past in zip(layers, pasts, strict=True):
        x, grown = layer.step(x, past, mask, UNRELATED)
        longer.append(grown)
    return x, tuple(longer)


def positions_of_tokens(memory: Memory, width: int) -> Int[Tensor, "B J"]:
    """Positions of the source from 0 on, and `width` positions of the target after the source of its row."""
    places = torch.arange(memory.mask.size(1) + width, device=memory.mask.device)
    source, target = places[: memory.mask.size(1)], places[:width]
    rows = len(memory.mask)
    return torch.cat([source.expand(rows, -1), lengths(memory.mask)[:, None] + target], dim=1)


def _unpadded(source_mask: Bool[Tensor, "B S"]) -> bool:
    """Every source has its `</s>`, so sources of one piece have no padding."""
    return source_mask.size(1) == 1


def _looking_back(source_mask: Bool[Tensor, "B S"], width: int) -> Mask:
    """Every position sees those before it but the padding between source and target."""
    if _unpadded(source_mask):
        return CAUSAL
    return replace(padding(F.pad(source_mask, (0, width), value=True)), causal=True)
