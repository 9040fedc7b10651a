"""Blocks of text whose beginning is given: prefix language models (Liu et al. 2018; Raffel et al. 2020).

    </s> <s> a b </s>  <s> c d e </s>
    └─ source ──────┘  └─ target ───┘      cut where a line begins, or anywhere where none does

Where the cut is, is drawn anew in every epoch, as a pure function of (seed, epoch, number of the block).
"""

import numpy as np

from dragoman.data.batch import PairBatch, pad
from dragoman.data.blocks import Blocks
from dragoman.data.corpus import PairStore
from dragoman.data.seeded import Dice
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
    """How many pieces of a block are given: at least the first, and not the last two."""
    lines = 1 + np.flatnonzero(ids[1:-1] == BOS_ID)
    return int(lines[dice.one_below(len(lines))]) if len(lines) else 1 + dice.one_below(len(ids) - 2)


class PrefixedText:
    def __init__(self, blocks: Blocks, seed: int) -> None:
        self.blocks, self.seed = blocks, seed
        self.corpora, self.origin = blocks.corpora, blocks.origin
        self.src_lengths = blocks.lengths - 1  # with its last piece in the place of the </s> of a pair
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
        asked = mask[:, 1:] & (tgt_out != BOS_ID)  # that a line begins where another has ended is no news
        return PairBatch(
            src_ids=src_ids,
            src_mask=src_mask,
            tgt_in=ids[:, :-1].masked_fill(~mask[:, 1:], PAD_ID),
            tgt_out=tgt_out.masked_fill(~asked, PAD_ID),
            tgt_mask=asked,
            num_tokens=int(asked.sum()),
        )
