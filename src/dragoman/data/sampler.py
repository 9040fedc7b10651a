"""Batches of similar length within a token budget, in an order that is a pure function of (seed, epoch).

    corpora ──> blocks ──shuffle──> windows ──shuffle, sort by length──> batches ──shuffle──> out

Memory is bounded by one window, regardless of the size of the corpus. A corpus that fits into one window is
shuffled as a whole.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.data.seeded_random import random_bits, shuffle
from dragoman.errors import UserError

_BLOCK = 4096
"""Number of neighbouring pairs that are read together: a block of a mapped array is a few pages."""


@dataclass(frozen=True)
class Window:
    """A window of an epoch. Training that resumes inside it need not process earlier windows."""

    number: int = 0
    before: int = 0
    """Number of batches of the epoch before the window."""


FIRST = Window()


@dataclass(frozen=True)
class CorpusRange:
    """The pairs `start` to `end` of a store, which form one corpus. An epoch draws `weight` × their
    number."""

    start: int
    end: int
    weight: float = 1.0

    @property
    def draws(self) -> int:
        return round(self.weight * (self.end - self.start))


def tempered(
    corpora: Sequence[CorpusRange], temperature: float, groups: Sequence[int] | None = None
) -> tuple[CorpusRange, ...]:
    """Weights for a temperature T: the number of draws stays the same, and a corpus of d draws gets a share
    proportional to d^(1/T) (Arivazhagan et al. 2019, section 4.2). At T = 1 nothing changes; at infinity all
    shares are equal. With `groups`, the group number of each corpus, the share is that of a group and is
    divided among its corpora by their draws."""
    if temperature == 1:
        return tuple(corpora)
    named = range(len(corpora)) if groups is None else groups
    totals: Counter[int] = Counter()
    for corpus, group in zip(corpora, named, strict=True):
        totals[group] += corpus.draws
    parts = [
        float(totals[group]) ** (1 / temperature) * (corpus.draws / max(1, totals[group]))
        for corpus, group in zip(corpora, named, strict=True)
    ]
    scale = sum(corpus.draws for corpus in corpora) / (sum(parts) or 1.0)
    return tuple(
        CorpusRange(corpus.start, corpus.end, scale * part / max(1, corpus.end - corpus.start))
        for corpus, part in zip(corpora, parts, strict=True)
    )


class BucketSampler:
    """Batches of pair indices with n × max(longest source + 1, longest target + 1) ≤ `batch_tokens`.

    Without weights an epoch uses each pair exactly once. With weight w a corpus of n pairs gives round(w·n)
    draws: whole passes, and a random part that differs in each epoch.
    """

    def __init__(
        self,
        src_lengths: np.ndarray,
        tgt_lengths: np.ndarray,
        *,
        batch_tokens: int,
        seed: int,
        corpora: Sequence[CorpusRange] | None = None,
        max_sentences: int | None = None,
        window: int = 1 << 20,
        origin: Callable[[int], str] | None = None,
    ) -> None:
        if batch_tokens < 1:
            raise UserError(f"batch_tokens: expected at least 1, found {batch_tokens}")
        if max_sentences is not None and max_sentences < 1:
            raise UserError(f"max_sentences: expected at least 1, found {max_sentences}")
        assert len(src_lengths) == len(tgt_lengths)
        assert window > 0
        self.src_lengths, self.tgt_lengths = src_lengths, tgt_lengths
        self.batch_tokens, self.max_sentences = batch_tokens, max_sentences
        self.seed, self.window = seed, window
        self.corpora = tuple(corpora) if corpora is not None else (CorpusRange(0, len(src_lengths)),)
        self.draws = sum(corpus.draws for corpus in self.corpora)
        """Number of pairs that one epoch uses."""
        if self.draws == 0:
            raise UserError("there is no pair to draw: the corpus is empty, or its weights are too small")
        self._block = max(1, min(_BLOCK, window // 64))
        self._refuse_overlong(origin or (lambda index: f"pair {index}"))

    def batches(self, epoch: int, start: int = 0) -> Iterator[np.ndarray]:
        """The batches of an epoch from batch number `start`, each as an array of pair indices."""
        return (batch for batch, _ in self.placed(epoch, start))

    def placed(
        self, epoch: int, start: int = 0, window: Window = FIRST
    ) -> Iterator[tuple[np.ndarray, Window]]:
        """The batches with the window of each. `window` must contain batch `start` or come before it; the
        windows before it are skipped."""
        before = window.before
        assert before <= start, "the window begins before the batch"
        for number, indices, bits in self._windows(epoch, window.number):
            cuts = self._cut(indices, bits)
            order = shuffle(bits, len(cuts) - 1)
            here = Window(number, before)
            for batch in order[max(0, start - before) :]:
                yield indices[cuts[batch] : cuts[batch + 1]], here
            before += len(order)

    def num_batches(self, epoch: int, windows: int | None = None) -> int:
        """Number of batches of this epoch. Costs one pass over the lengths. With `windows`, an estimate from
        the first windows."""
        batches = pairs = 0
        for _, indices, bits in itertools.islice(self._windows(epoch), windows):
            batches += len(self._cut(indices, bits)) - 1
            pairs += len(indices)
        return round(batches * self.draws / pairs)

    def _windows(
        self, epoch: int, first_window: int = 0
    ) -> Iterator[tuple[int, np.ndarray, np.random.BitGenerator]]:
        """Shuffled pair indices, about `window` at a time, each with the window number and its random
        generator."""
        blocks = self._blocks(epoch)
        window_of = (np.cumsum(blocks[:, 2]) - blocks[:, 2]) // self.window
        bounds = np.flatnonzero(np.diff(window_of, prepend=-1, append=-1))
        for number, (first, last) in enumerate(itertools.pairwise(bounds[first_window:]), first_window):
            bits = random_bits(self.seed, epoch, number + 1)
            indices = np.concatenate([_take(bits, *block) for block in blocks[first:last].tolist()])
            yield number, indices[shuffle(bits, len(indices))], bits

    def _blocks(self, epoch: int) -> np.ndarray:
        """Rows (start, end, pairs to take) that together are the draws of the epoch, shuffled."""
        bits = random_bits(self.seed, epoch, 0)
        rows = []
        for corpus in self.corpora:
            size = corpus.end - corpus.start
            if size == 0:
                continue
            passes, part = divmod(corpus.draws, size)
            edges = np.append(np.arange(0, size, self._block), size)
            whole = np.stack([edges[:-1], edges[1:], np.diff(edges)], axis=1)
            # Systematic sampling: a block gives its share of the part, rounded so that the shares add up. A
            # random phase per epoch avoids favouring any block.
            phase = int(bits.random_raw() % size)
            shares = np.diff((edges * part + phase) // size)
            partial = np.stack([edges[:-1], edges[1:], shares], axis=1)[shares > 0]
            corpus_rows = np.concatenate([whole] * passes + [partial])
            corpus_rows[:, :2] += corpus.start
            rows.append(corpus_rows)
        blocks = np.concatenate(rows)
        return blocks[shuffle(bits, len(blocks))]

    def _cut(self, indices: np.ndarray, bits: np.random.BitGenerator) -> np.ndarray:
        """Sort `indices` in place so that neighbours have similar lengths. Returns the batch boundaries."""
        src = self.src_lengths[indices].astype(np.int64) + 1
        tgt = self.tgt_lengths[indices].astype(np.int64) + 1
        order = _by_length(src, tgt, bits)
        indices[:] = indices[order]
        longest = np.maximum(src, tgt)[order]
        cuts = [0]
        while cuts[-1] < len(longest):
            first = cuts[-1]
            most = max(1, self.batch_tokens // int(longest[first]))
            if self.max_sentences is not None:
                most = min(most, self.max_sentences)
            ahead = np.maximum.accumulate(longest[first : first + most])
            padded = ahead * np.arange(1, len(ahead) + 1)
            cuts.append(first + int(np.searchsorted(padded, self.batch_tokens, side="right")))
        return np.array(cuts)

    def _refuse_overlong(self, origin: Callable[[int], str]) -> None:
        for lengths, side in ((self.src_lengths, "source"), (self.tgt_lengths, "target")):
            longest = int(np.argmax(lengths))
            tokens = int(lengths[longest]) + 1
            if tokens > self.batch_tokens:
                raise UserError(
                    f"{origin(longest)}: the {side} has {tokens} tokens with its end mark, more than"
                    f" batch_tokens = {self.batch_tokens}: raise batch_tokens or lower max_length"
                )


def _by_length(src: np.ndarray, tgt: np.ndarray, bits: np.random.BitGenerator) -> np.ndarray:
    """An order in which neighbours have similar lengths on both sides.

    Sorts by the longer side, which the budget counts, then by the difference of the sides, alternately
    ascending and descending, so that the shorter side needs little padding too. Each length is increased by a
    random amount of up to a tenth: otherwise the pairs of a small corpus would meet in the same batches in
    every epoch.
    """
    longest = np.maximum(src, tgt)
    noise = (bits.random_raw(len(longest)) >> np.uint64(48)).astype(np.int64)  # 16 bits
    step = longest + longest * noise // (10 << 16)
    difference = src - tgt
    return np.lexsort((np.where(step % 2 == 0, difference, -difference), step))


def _take(bits: np.random.BitGenerator, start: int, end: int, take: int) -> np.ndarray:
    if take == end - start:
        return np.arange(start, end)
    return start + shuffle(bits, end - start)[:take]


class TrackSampler:
    """Blocks of text in order: every row of a batch continues the same row of the previous batch.

        text     0 1 2 3 4 5 6 7 8 9         batches   0 4 8
        tracks   0 1 2 3 | 4 5 6 7 | 8 9               1 5 9
                                                       2 6
                                                       3 7

    The text is divided into one track per row of a batch, and all tracks are read in parallel, as for
    AWD-LSTM (Merity et al. 2018). Tracks that end early are the last rows, and every block is read once. All
    epochs are equal.
    """

    def __init__(self, blocks: int, rows: int) -> None:
        if not blocks:
            raise UserError("there is no text to read: the corpus is empty")
        self.blocks = self.draws = blocks
        self.steps = -(-blocks // max(1, rows))
        """Number of blocks in the longest track."""
        self.firsts = np.arange(0, blocks, self.steps)

    def batches(self, epoch: int, start: int = 0) -> Iterator[np.ndarray]:  # noqa: ARG002
        for step in range(start, self.steps):
            numbers = self.firsts + step
            yield numbers[numbers < self.blocks]

    def placed(
        self, epoch: int, start: int = 0, window: Window = FIRST
    ) -> Iterator[tuple[np.ndarray, Window]]:
        """The batches of an epoch, which is a single window."""
        return ((batch, window) for batch in self.batches(epoch, start))

    def num_batches(self, epoch: int, windows: int | None = None) -> int:  # noqa: ARG002
        return self.steps
