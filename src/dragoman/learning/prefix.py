"""Prefix language models: continue the beginning of a block (Liu et al. 2018; Raffel et al. 2020).

    </s> <s> a b </s>  <s> c d e </s>
    └─ source ──────┘  └─ target ───┘      split where a line begins, or anywhere if none does

The split is drawn again in every epoch, as a pure function of (seed, epoch, index of the block).
"""

import numpy as np

from dragoman.data.batch import PairBatch, pad
from dragoman.data.blocks import Blocks
from dragoman.data.corpus import PairStore
from dragoman.data.seeded_random import Dice
from dragoman.learning.text import FromText
from dragoman.runs.config import Purpose, RunConfig
from dragoman.text.tokenizer import BOS_ID, PAD_ID, Tokenizer


class Prefix(FromText):
    name = "prefix"
    purpose: Purpose = "generate"

    def preset(self, gpu: bool) -> str:
        return "gpt-small" if gpu else "gpt-tiny"

    def text_examples(self, config: RunConfig, store: PairStore, tokenizer: Tokenizer) -> "PrefixedText":  # noqa: ARG002
        return PrefixedText(self.blocks(config, store), config.seed)


def cut_of(ids: np.ndarray, dice: Dice) -> int:
    """Number of tokens in the source: at least the first, and not the last two."""
    lines = 1 + np.flatnonzero(ids[1:-1] == BOS_ID)
    return int(lines[dice.one_below(len(lines))]) if len(lines) else 1 + dice.one_below(len(ids) - 2)


class PrefixedText:
    def __init__(self, blocks: Blocks, seed: int) -> None:
        self.blocks, self.seed = blocks, seed
        self.corpora, self.origin = blocks.corpora, blocks.origin
        self.src_lengths = blocks.lengths - 1  # its last token takes the place of the </s> of a pair
        self.tgt_lengths = blocks.lengths - 1

    def __len__(self) -> int:
        return len(self.blocks)

    def batch(self, numbers: np.ndarray, epoch: int) -> PairBatch:
        rows = [self.blocks[number] for number in numbers.tolist()]
        cuts = [
            cut_of(row, Dice(self.seed, epoch, number))
            for row, number in zip(rows, numbers.tolist(), strict=True)
        ]
        src_ids, src_mask = pad([row[:cut] for row, cut in zip(rows, cuts, strict=True)])
        ids, mask = pad([row[cut:] for row, cut in zip(rows, cuts, strict=True)])
        tgt_out = ids[:, 1:]
        asked = mask[:, 1:] & (tgt_out != BOS_ID)  # <s> always follows </s>
        return PairBatch(
            src_ids=src_ids,
            src_mask=src_mask,
            tgt_in=ids[:, :-1].masked_fill(~mask[:, 1:], PAD_ID),
            tgt_out=tgt_out.masked_fill(~asked, PAD_ID),
            tgt_mask=asked,
            num_tokens=int(asked.sum()),
        )
