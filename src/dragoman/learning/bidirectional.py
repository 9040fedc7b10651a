"""Blocks of text for a language model in both directions (Peters et al. 2018, section 3.1).

x a b c y        input: a block, with the token before it and the one after it
  a b c          targets, predicted once from the left and once from the right
"""

from typing import Any

import numpy as np
import torch

from dragoman.data.batch import TextBatch, pad
from dragoman.data.blocks import Blocks
from dragoman.data.corpus import PairStore
from dragoman.learning.loss import Answers
from dragoman.learning.masked_prediction import HiddenPieces
from dragoman.models.abilities import Abilities
from dragoman.runs.config import RunConfig
from dragoman.text.tokenizer import BOS_ID, Tokenizer


class Bidirectional(HiddenPieces):
    name = "bidirectional"

    def preset(self, gpu: bool) -> str:  # noqa: ARG002
        return "elmo-tiny"

    def fits(self, abilities: Abilities) -> bool:
        return abilities.reads_both_ways

    def text_examples(self, config: RunConfig, store: PairStore, tokenizer: Tokenizer) -> "BothWaysText":  # noqa: ARG002
        return BothWaysText(self.blocks(config, store))

    def answer(self, model: Any, batch: TextBatch) -> Answers:
        """Outputs at the position before each target, and at the one after it."""
        ahead, back = (layers[-1].flatten(0, 1) for layers in model.both_ways(batch.ids, batch.mask))
        return Answers(torch.cat([ahead[batch.asked - 1], back[batch.asked + 1]]), batch.targets.repeat(2))


class BothWaysText:
    def __init__(self, blocks: Blocks) -> None:
        self.blocks, self.corpora, self.origin = blocks, blocks.corpora, blocks.origin
        self.src_lengths = blocks.lengths + 1  # a sampler counts one mark itself
        self.tgt_lengths = np.zeros(len(blocks), dtype=np.int32)

    def __len__(self) -> int:
        return len(self.blocks)

    def batch(self, numbers: np.ndarray, epoch: int) -> TextBatch:  # noqa: ARG002
        rows = [self.blocks[number] for number in numbers.tolist()]
        ids, mask = pad(rows)
        asked = np.concatenate([number * ids.size(1) + _asked(row) for number, row in enumerate(rows)])
        places = torch.from_numpy(asked)
        return TextBatch(
            ids=ids,
            mask=mask,
            segments=torch.zeros_like(ids),
            asked=places,
            targets=ids.flatten()[places],
            follows=None,
            num_tokens=2 * len(asked),
        )


def _asked(row: np.ndarray) -> np.ndarray:
    """All but both ends and `<s>`, which always follows `</s>`."""
    return 1 + np.flatnonzero(row[1:-1] != BOS_ID)
