"""UniLM (Dong et al. 2019): one Transformer with several attention masks.

    both sides        every piece sees every other                          segment 0, as BERT
    left to right     every piece sees those before it                      segment 1, as GPT
    source, target    the source sees itself, the target both, and of       segments 2 and 3, as an
                      itself what stands before                             encoder-decoder

    ids ─ embed ─ + learnt positions ─ + segment ─ norm ─ [ self-attention ─ feed-forward ]×L ─▶ hidden
    hidden ─ linear ─ gelu ─ norm ─ embeddingᵀ ─▶ which piece stands here

A piece to be predicted is replaced by a blank, a learnt vector. Under every mask the model predicts the
pieces at the blanks. To generate, it appends a blank, predicts the piece, and removes the blank.

    training    x₁ … x_S  y₀ … y_{T−1}  □₁ … □_T     blank □_t has the position of y_t, sees x and the
                                                     pieces before it, and no other blank
    search      y_{t−1} □_t                          keys and values of y_{t−1} are kept, those of □_t not
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.models.abilities import Abilities
from dragoman.models.base import EncoderDecoder, Memory, Vocab, join
from dragoman.models.gpt import GptReader, GptState, positions_of_tokens, step_through
from dragoman.models.layer_stack import StackConfig, gpt_weights, stack
from dragoman.nn.dropout import dropout
from dragoman.nn.layer import ACTIVATIONS, EncoderLayer, all_layers
from dragoman.nn.linear import TokenEmbedding, xavier_linear
from dragoman.nn.mask import Mask, padding
from dragoman.nn.norm import make_norm
from dragoman.nn.positions import UNRELATED, LearnedPositions, position_weight
from dragoman.shapes import Bool, Float, Int, Tensor

BOTH_SIDES, LEFT_TO_RIGHT, SOURCE, TARGET = range(4)
"""Segments: how a piece is read."""


@dataclass(frozen=True)
class UnilmConfig(StackConfig):
    @property
    def scale_embeddings(self) -> bool:
        return False

    @property
    def tie_embeddings(self) -> bool:
        return True

    @property
    def output_bias(self) -> bool:
        return True

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            reads_in_decoder=True,
            continues_source=True,
            reads_by_segment=True,
            block_marks=2,
            max_length=self.max_positions,
        )


def unilm(config: UnilmConfig, vocab: Vocab) -> EncoderDecoder:
    model = join(vocab, GptReader, config, UnilmDecoder, config)
    gpt_weights(model)
    return model


class UnilmDecoder(nn.Module):
    def __init__(self, config: UnilmConfig, embedding: TokenEmbedding, memory_dim: int) -> None:
        super().__init__()
        width = config.model_dim
        assert memory_dim == width, "source and target are one sequence"
        self.embedding = embedding
        self.blank = nn.Parameter(torch.empty(width).normal_(std=0.02))
        self.positions = LearnedPositions(config.max_positions, width)
        self.segments = position_weight(TARGET + 1, width)
        self.embedding_norm = make_norm(width, "layer", config.norm_eps)
        self.layers = cast(Sequence[EncoderLayer], stack(config, "post"))
        self.transform = xavier_linear(width, [width])
        self.transform_norm = make_norm(width, "layer", config.norm_eps)
        self.activation, self.dropout = ACTIVATIONS[config.activation], config.dropout

    def read_text(
        self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        """Text whose segments say how it is read. A visible `<pad>` is a blank."""
        blank = (ids == self.embedding.pad_id) & mask
        x = torch.where(blank[..., None], self.blank, self.embedding(ids))
        places = torch.arange(ids.size(1), device=ids.device)[None]
        return self._through(self._placed(x, places, segments), looking(mask, segments))[-1]

    def to_say(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """The input of the projection."""
        return self.transform_norm(self.activation(self.transform(hidden)))

    def read_memory(self, memory: Memory) -> list[Float[Tensor, "B S D"]]:
        """The vectors of every layer for a source, read from both sides."""
        x = self._placed(memory.hidden, positions_of_tokens(memory, 0), _all(BOTH_SIDES, memory.hidden))
        return self._through(x, padding(memory.mask))

    def forward(self, tgt_in: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T D"]:
        src, width = memory.hidden.size(1), tgt_in.size(1)
        pieces = self.embedding(tgt_in)
        x = torch.cat([memory.hidden, pieces, self.blank.expand_as(pieces)], dim=1)  # B S+2T D
        places = positions_of_tokens(memory, width)  # B S+T
        places = torch.cat([places, places[:, src:] + 1], dim=1)
        segments = _all(TARGET, x)
        segments[:, :src] = SOURCE
        x = self._through(self._placed(x, places, segments), _with_blanks(memory.mask, width))[-1]
        return self.to_say(x[:, src + width :])

    def start(self, memory: Memory) -> GptState:
        x = self._placed(memory.hidden, positions_of_tokens(memory, 0), _all(SOURCE, memory.hidden))
        return GptState.after(self.layers, x, padding(memory.mask), memory)

    def step(self, last_ids: Int[Tensor, "N"], state: GptState) -> tuple[Float[Tensor, "N D"], GptState]:
        last = self.embedding(last_ids[:, None])
        x = torch.cat([last, self.blank.expand_as(last)], dim=1)  # N 2 D
        places = torch.cat([state.places, state.places + 1], dim=1)
        x = self._placed(x, places, _all(TARGET, x))
        x, pasts = step_through(self.layers, x, state.pasts, state.mask(2))
        pasts = tuple(replace(past, length=past.length - 1) for past in pasts)  # without the blank
        return self.to_say(x[:, 1]), replace(state, pasts=pasts, position=state.position + 1)

    def _placed(
        self, x: Float[Tensor, "B T D"], places: Int[Tensor, "#B T"], segments: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        x = self.positions.at(x, places) + F.embedding(segments, self.segments)
        return dropout(self.embedding_norm(x), self.dropout, self.training)

    def _through(self, x: Float[Tensor, "B T D"], mask: Mask) -> list[Float[Tensor, "B T D"]]:
        return all_layers(self.layers, x, mask, UNRELATED)


def looking(mask: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"]) -> Mask:
    """All pieces see those before them; pieces that are read from both sides see each other."""
    freely = (segments == BOTH_SIDES) | (segments == SOURCE)
    places = torch.arange(mask.size(1), device=mask.device)
    before = places[None, :] <= places[:, None]  # Q M
    visible = before | (freely[:, :, None] & freely[:, None, :])  # B Q M
    return Mask((visible & mask[:, None, :])[:, None])


def _with_blanks(source_mask: Bool[Tensor, "B S"], width: int) -> Mask:
    """The mask of source, pieces and blanks, as drawn above."""
    device, src = source_mask.device, source_mask.size(1)
    before = torch.ones(width, width, dtype=torch.bool, device=device).tril()
    own = torch.eye(width, dtype=torch.bool, device=device)
    none = torch.zeros_like(own)
    among = torch.cat([torch.cat([before, none], dim=1), torch.cat([before, own], dim=1)])  # 2T 2T
    among = F.pad(among, (0, 0, src, 0))  # the source sees neither
    seen = source_mask[:, None].expand(-1, src + 2 * width, -1)
    return Mask(torch.cat([seen, among.expand(len(seen), -1, -1)], dim=2)[:, None])


def _all(segment: int, like: Float[Tensor, "B T D"]) -> Int[Tensor, "B T"]:
    return torch.full(like.shape[:2], segment, device=like.device)
