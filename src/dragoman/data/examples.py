"""What training draws: numbered examples with their lengths, and how some of them become a batch.

    pairs     source and target, perhaps segmented anew in every epoch, perhaps with links
    stream    blocks of running text, each piece from those before it      (causal language model)
    noised    blocks with something done to them, to be undone             (T5, BART)

Pieces to be guessed, as BERT has them, are in `data/masked.py`.

A batch is a pure function of the numbers of its examples and of the epoch.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch

from dragoman.data.alignment.spread import LinkSpread
from dragoman.data.batch import PairBatch, collate, pad
from dragoman.data.blocks import Blocks
from dragoman.data.dice import Dice
from dragoman.data.packed import Batch
from dragoman.data.pairs import load_pairs, load_pairs_dropout
from dragoman.data.sampler import CorpusRange
from dragoman.data.store import PairStore
from dragoman.text.tokenizer import BOS_ID, PAD_ID, Tokenizer

_NOTHING = np.zeros(0, dtype=np.int64)


class Examples(Protocol):
    @property
    def src_lengths(self) -> np.ndarray: ...
    @property
    def tgt_lengths(self) -> np.ndarray: ...
    @property
    def corpora(self) -> Sequence[CorpusRange]: ...
    def __len__(self) -> int: ...
    def origin(self, index: int) -> str: ...
    def batch(self, numbers: np.ndarray, epoch: int) -> Batch: ...


class Pairs:
    """The pairs of a store. `dropout` is that of BPE; `max_length` then bounds what it makes of a side."""

    def __init__(
        self,
        store: PairStore,
        tokenizers: tuple[Tokenizer, Tokenizer],
        *,
        dropout: float = 0.0,
        seed: int = 0,
        max_length: int | None = None,
        linked: bool = False,
    ) -> None:
        self.store, self.tokenizers, self.dropout = store, tokenizers, dropout
        self.seed, self.max_length = seed, max_length
        self.src_lengths, self.tgt_lengths, self.corpora = store.src_lengths, store.tgt_lengths, store.corpora
        self.origin = store.origin
        self._spread = LinkSpread(store, *tokenizers) if linked else None

    def __len__(self) -> int:
        return len(self.store)

    def batch(self, numbers: np.ndarray, epoch: int) -> PairBatch:
        if self.dropout:
            settings = {"rate": self.dropout, "seed": self.seed, "epoch": epoch}
            ids = load_pairs_dropout(
                self.store, numbers, *self.tokenizers, **settings, max_length=self.max_length
            )
        else:
            ids = load_pairs(self.store, numbers)
        batch = collate(ids)
        return batch if self._spread is None else replace(batch, links=self._spread(numbers, ids))


class Stream:
    """Blocks of text for a causal language model: the source is the one piece before a block.

    `carried`: batches are those of `data/tracks.py`, and begin anew where the first block is among them.
    """

    def __init__(self, blocks: Blocks, carried: bool = False) -> None:
        self.carried = carried
        self.blocks, self.corpora, self.origin = blocks, blocks.corpora, blocks.origin
        self.src_lengths = np.zeros(len(blocks), dtype=np.int32)  # its one piece stands for the </s>
        self.tgt_lengths = blocks.lengths - 1  # as a pair's, without the one piece that ends it

    def __len__(self) -> int:
        return len(self.blocks)

    def batch(self, numbers: np.ndarray, epoch: int) -> PairBatch:  # noqa: ARG002
        ids, mask = pad([self.blocks[number] for number in numbers.tolist()])
        tgt_out = ids[:, 2:]
        asked = mask[:, 2:] & (tgt_out != BOS_ID)  # that a line begins where another has ended is no news
        return PairBatch(
            src_ids=ids[:, :1].contiguous(),
            src_mask=torch.ones(len(ids), 1, dtype=torch.bool),
            tgt_in=ids[:, 1:-1].contiguous(),
            tgt_out=tgt_out.masked_fill(~asked, PAD_ID),
            tgt_mask=asked,
            num_tokens=int(asked.sum()),
            goes_on=self.carried and int(numbers[0]) > 0,
        )


Noise = Callable[[Sequence[np.ndarray], Dice], tuple[np.ndarray, np.ndarray]]
"""From the lines of a block to a source and a target."""


class Noised:
    """Blocks as pairs: what is left of them, and what has to be said. Lines have no marks between them."""

    def __init__(self, blocks: Blocks, noise: Noise, seed: int) -> None:
        self.blocks, self.noise, self.seed = blocks, noise, seed
        self.corpora, self.origin = blocks.corpora, blocks.origin
        self.src_lengths = blocks.lengths
        self.tgt_lengths = blocks.lengths + 2  # the sentinels of a text of one piece

    def __len__(self) -> int:
        return len(self.blocks)

    def batch(self, numbers: np.ndarray, epoch: int) -> PairBatch:
        return collate([self._pair(number, epoch) for number in numbers.tolist()])

    def _pair(self, number: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        lines = self.blocks.sentences(number)
        return self.noise(lines, Dice(self.seed, epoch, number)) if lines else (_NOTHING, _NOTHING)
