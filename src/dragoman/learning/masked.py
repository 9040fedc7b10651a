"""Masked language modelling and next-sentence prediction (BERT, Devlin et al. 2019, section 3.1).

    <s> a a a </s> b b </s>      segment 0 up to the first </s>, then 1
        a <mask> a     b x       input
          a              b       targets

The first text is the beginning of a block; the second is its rest or, equally often, a part of another block.
Masks are drawn again in every epoch, as a pure function of (seed, epoch, index of the block).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from dragoman.data.batch import TextBatch, pad
from dragoman.data.blocks import Blocks
from dragoman.data.corpus import PairStore
from dragoman.data.noise import MASK, NoiseConfig, Pieces, mask_pieces
from dragoman.data.packed import NO_TEXT, PackedText
from dragoman.data.seeded_random import Dice
from dragoman.learning.loss import Answers, Loss, Objective
from dragoman.learning.masked_prediction import HiddenPieces
from dragoman.learning.text import maskable_pieces, special_id
from dragoman.models import Network
from dragoman.models.abilities import Abilities
from dragoman.models.task_heads import TaskNetwork
from dragoman.nn.loss import projected_cross_entropy
from dragoman.runs.config import RunConfig
from dragoman.text.tokenizer import BOS_ID, EOS_ID, Tokenizer

_NOTHING = np.zeros(0, dtype=np.int64)
_BEGIN, _END = np.array([BOS_ID]), np.array([EOS_ID])


class Masked(HiddenPieces):
    name = "masked"
    next_step = "fine-tune it with:  dragoman finetune {run} FILES --task KIND"
    packed_lengths = 64  # packed texts are almost full, so they have few different lengths

    def preset(self, gpu: bool) -> str:  # noqa: ARG002
        return "bert-tiny"

    def fits(self, abilities: Abilities) -> bool:
        return abilities.predicts_masked

    def marks(self, config: RunConfig, abilities: Abilities) -> int | None:
        """One text has one `</s>` less."""
        marks = abilities.block_marks
        return marks if marks is None or config.objective.next_sentence else marks - 1

    def specials(self, config: RunConfig) -> tuple[str, ...]:  # noqa: ARG002
        return (MASK,)

    def text_examples(self, config: RunConfig, store: PairStore, tokenizer: Tokenizer) -> "MaskedText":
        objective = config.objective
        pieces = maskable_pieces(tokenizer, objective.noise.whole_words, special_id(tokenizer, MASK))
        blocks = self.blocks(config, store)
        return MaskedText(blocks, objective.noise, pieces, config.seed, pairs=objective.next_sentence)

    def answer(self, model: Any, batch: TextBatch) -> Answers:
        hidden = model.read(batch.ids, batch.mask, batch.segments)
        asked = hidden.flatten(0, 1)[batch.asked]
        return Answers(asked, batch.targets, None if batch.follows is None else model.follows(hidden))

    def objective(self, config: RunConfig, model: Any, processes: int) -> Objective:  # noqa: ARG002
        return MaskedLanguageModel()

    def packs(self, config: RunConfig, model: Network | TaskNetwork) -> bool:  # noqa: ARG002
        return model.abilities.packs

    def one_shape(self, config: RunConfig, model: Network | TaskNetwork) -> bool:  # noqa: ARG002
        return model.abilities.graph_capture


class MaskedLanguageModel(Objective):
    """−log p of the masked tokens, and, for two texts, of whether the second follows.

    J = mean over tokens + mean over rows (Devlin et al. 2019, appendix A.2), as a sum over the tokens.
    """

    def __call__(self, model: Any, batch: TextBatch | PackedText, update: int = 0) -> Loss:  # noqa: ARG002
        if isinstance(batch, PackedText):
            hidden = model.packed(batch.ids, batch.packing, batch.segments)
            firsts, other = hidden[0, batch.firsts][:, None], batch.other
        else:
            hidden = firsts = model.read(batch.ids, batch.mask, batch.segments)
            other = None if batch.follows is None else (~batch.follows).long()
        asked = model.before_projection(hidden.flatten(0, 1).index_select(0, batch.asked))  # A D
        weight, bias, pad_id = model.projection.weight, model.projection.bias, model.vocab.pad_id
        total, nll = projected_cross_entropy(asked, weight, bias, batch.targets, pad_id, 0.0)
        scores = model.follows(firsts)
        if other is None:
            total = total + 0 * scores.sum()  # distributed training needs a gradient for every weight
        else:
            count = (batch.targets != pad_id).sum()  # in place: a CUDA graph has fixed addresses
            total = total + count * F.cross_entropy(scores, other, ignore_index=NO_TEXT)
        return Loss(total, nll, batch.num_tokens)


@dataclass(frozen=True)
class _Row:
    ids: np.ndarray
    segments: np.ndarray
    asked: np.ndarray
    targets: np.ndarray
    follows: bool


class MaskedText:
    def __init__(self, blocks: Blocks, noise: NoiseConfig, pieces: Pieces, seed: int, pairs: bool) -> None:
        """`pairs`: two texts, of which the second may not follow; otherwise the block is one text."""
        self.blocks, self.noise, self.pieces, self.seed, self.pairs = blocks, noise, pieces, seed, pairs
        self.corpora, self.origin = blocks.corpora, blocks.origin
        self.src_lengths = blocks.lengths + 2  # a sampler counts one mark itself
        self.tgt_lengths = np.zeros(len(blocks), dtype=np.int32)

    def __len__(self) -> int:
        return len(self.blocks)

    def batch(self, numbers: np.ndarray, epoch: int) -> TextBatch:
        rows = [self._row(number, Dice(self.seed, epoch, number)) for number in numbers.tolist()]
        ids, mask = pad([row.ids for row in rows])
        segments, _ = pad([row.segments for row in rows])
        asked = np.concatenate([number * ids.size(1) + row.asked for number, row in enumerate(rows)])
        return TextBatch(
            ids=ids,
            mask=mask,
            segments=segments,
            asked=torch.from_numpy(asked),
            targets=torch.from_numpy(np.concatenate([row.targets for row in rows])),
            follows=torch.tensor([row.follows for row in rows]) if self.pairs else None,
            num_tokens=len(asked),
        )

    def _row(self, number: int, dice: Dice) -> _Row:
        first, second, follows = self._texts(number, dice)
        words = np.concatenate([first, second])
        if not len(words):  # a block of marks only: predict the mark
            return _Row(
                np.array([BOS_ID, EOS_ID]), np.zeros(2, np.int64), np.array([1]), np.array([EOS_ID]), True
            )
        starts = self.pieces.word_starts
        read, chosen = mask_pieces(
            words,
            dice,
            share=self.noise.share,
            mask_id=self.pieces.mask_id,
            first=self.pieces.first,
            size=self.pieces.size,
            word_starts=None if starts is None else starts[words],
        )
        cut = len(first)
        parts = [_BEGIN, read[:cut], _END, *([read[cut:], _END] if self.pairs else [])]
        ids = np.concatenate(parts, dtype=np.int64)
        asked = np.flatnonzero(chosen)
        segments = np.zeros(len(ids), dtype=np.int64)
        segments[cut + 2 :] = 1
        return _Row(ids, segments, asked + 1 + (asked >= cut), words[asked], follows)  # after <s> and </s>

    def _texts(self, number: int, dice: Dice) -> tuple[np.ndarray, np.ndarray, bool]:
        lines = self.blocks.sentences(number)
        if not self.pairs or not lines:
            return np.concatenate([*lines, _NOTHING]), _NOTHING, True
        if len(lines) == 1:
            lines = np.array_split(lines[0], 2)
        cut = 1 + dice.one_below(len(lines) - 1)
        first, second = np.concatenate(lines[:cut]), np.concatenate(lines[cut:])
        other = dice.one_below(len(self)) if dice.uniform(1)[0] < 0.5 else number
        others = self.blocks.sentences(other) if other != number else []
        if not others:
            return first, second, True
        begin = dice.one_below(len(others))
        if sum(map(len, others[begin:])) < len(second):
            begin = 0
        # As long as the text it replaces: otherwise its length would reveal that it does not follow.
        return first, np.concatenate(others[begin:])[: len(second)], False
