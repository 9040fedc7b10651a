"""UniLM: masked tokens under one of three attention masks (Dong et al. 2019, section 2.3).

    bidirectional, left to right, or the beginning as a source and the rest as a target

A block is read as a whole, with its marks; segments encode the mask (`models/unilm.py`). A share of the
tokens is predicted, including line ends, since a model that generates must know where to end; `<s>` never.
Everything is drawn again in every epoch, as a pure function of (seed, epoch, index of the block).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from dragoman.data.batch import TextBatch, pad
from dragoman.data.blocks import Blocks
from dragoman.data.corpus import PairStore
from dragoman.data.noise import NoiseConfig, Pieces, mask_pieces
from dragoman.data.seeded_random import Dice
from dragoman.learning.loss import Answers
from dragoman.learning.masked_prediction import HiddenPieces
from dragoman.learning.prefix import cut_of
from dragoman.learning.text import maskable_pieces
from dragoman.models.abilities import Abilities
from dragoman.runs.config import Purpose, RunConfig
from dragoman.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer

_WAYS = 3


class Unilm(HiddenPieces):
    name = "unilm"
    purpose: Purpose = "generate"

    def preset(self, gpu: bool) -> str:  # noqa: ARG002
        return "unilm-tiny"

    def fits(self, abilities: Abilities) -> bool:
        return abilities.reads_by_segment

    def text_examples(self, config: RunConfig, store: PairStore, tokenizer: Tokenizer) -> "SegmentedText":
        noise = config.objective.noise
        pieces = maskable_pieces(tokenizer, noise.whole_words, PAD_ID)  # a blank, see models/unilm.py
        blocks, shares = self.blocks(config, store), config.objective.mask_shares
        return SegmentedText(blocks, noise, pieces, config.seed, shares)

    def answer(self, model: Any, batch: TextBatch) -> Answers:
        """Predictions for the blanks, under the masks that the segments encode."""
        decoder = model.decoder
        hidden = decoder.read_text(batch.ids, batch.mask, batch.segments)
        return Answers(decoder.to_say(hidden.flatten(0, 1)[batch.asked]), batch.targets)


class SegmentedText:
    def __init__(
        self, blocks: Blocks, noise: NoiseConfig, pieces: Pieces, seed: int, shares: Sequence[float]
    ) -> None:
        """`shares`: relative frequency of each mask, in the order above."""
        self.blocks, self.noise, self.pieces, self.seed = blocks, noise, pieces, seed
        self._ends = np.cumsum(shares)[: _WAYS - 1] / np.sum(shares)
        self.corpora, self.origin = blocks.corpora, blocks.origin
        self.src_lengths = blocks.lengths + 1  # a sampler counts one mark itself
        self.tgt_lengths = np.zeros(len(blocks), dtype=np.int32)

    def __len__(self) -> int:
        return len(self.blocks)

    def batch(self, numbers: np.ndarray, epoch: int) -> TextBatch:
        wholes = [self.blocks[number] for number in numbers.tolist()]
        rows = [
            self._row(ids, Dice(self.seed, epoch, number))
            for ids, number in zip(wholes, numbers.tolist(), strict=True)
        ]
        ids, mask = pad([read for read, _, _ in rows])
        segments, _ = pad([segments for _, segments, _ in rows])
        asked = np.concatenate([number * ids.size(1) + asked for number, (_, _, asked) in enumerate(rows)])
        targets = np.concatenate([whole[asked] for whole, (_, _, asked) in zip(wholes, rows, strict=True)])
        return TextBatch(
            ids=ids,
            mask=mask,
            segments=segments,
            asked=torch.from_numpy(asked),
            targets=torch.from_numpy(targets),
            follows=None,
            num_tokens=len(asked),
        )

    def _row(self, ids: np.ndarray, dice: Dice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Input, segments, and the positions to predict."""
        way = int(np.searchsorted(self._ends, dice.uniform(1)[0], side="right"))
        segments = np.full(len(ids), way)
        if way == _WAYS - 1:
            segments[cut_of(ids, dice) :] += 1
        places = 2 + np.flatnonzero(ids[2:] != BOS_ID)  # the first two may be predicted in the previous block
        starts = self.pieces.word_starts
        read, chosen = mask_pieces(
            ids[places],
            dice,
            share=self.noise.share,
            mask_id=self.pieces.mask_id,
            first=self.pieces.first,
            size=self.pieces.size,
            word_starts=None if starts is None else starts[ids[places]] | (ids[places] == EOS_ID),
        )
        whole = ids.copy()
        whole[places] = read
        return whole, segments, places[chosen]
