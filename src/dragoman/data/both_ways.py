"""Blocks of text for a language model in both directions (Peters et al. 2018, section 3.1).

x a b c y        what is read: a block, with the piece before it and the one behind it
  a b c          what has to be said, once from the left and once from the right
"""

import numpy as np
import torch

from dragoman.data.batch import TextBatch, pad
from dragoman.data.blocks import Blocks
from dragoman.text.tokenizer import BOS_ID


class BothWays:
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
    """All but both ends, and `<s>`: that a line begins where another has ended is no news."""
    return 1 + np.flatnonzero(row[1:-1] != BOS_ID)
