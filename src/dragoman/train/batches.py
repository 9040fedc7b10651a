"""From the sampler's order to batches on the device, an update's worth at a time.

What an update learns from is a pure function of (seed, epoch, place in the epoch). On a GPU a thread prepares
the next batches in page-locked memory while the card works; the order is the same with it and without.
"""

import dataclasses
import itertools
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch

from dragoman.data.alignment.spread import LinkSpread
from dragoman.data.batch import PairBatch, collate
from dragoman.data.corpus import Prepared
from dragoman.data.pairs import IdPair, load_pairs, load_pairs_dropout
from dragoman.data.sampler import BucketSampler
from dragoman.train.config import RunConfig

T = TypeVar("T")
_AHEAD = 8


@dataclass(frozen=True)
class MicroBatch:
    batch: PairBatch
    pairs: np.ndarray
    """Numbers of the pairs in the training data."""
    epoch: int
    next_batch: int
    """Batches of this epoch that have been used when this one is done: where a resumed run goes on."""


@dataclass(frozen=True)
class UpdateBatch:
    """What one update learns from."""

    micro_batches: list[MicroBatch]
    last: bool
    """The data end here."""


def make_sampler(config: RunConfig, prepared: Prepared) -> BucketSampler:
    store = prepared.train
    return BucketSampler(
        store.src_lengths,
        store.tgt_lengths,
        batch_tokens=config.train.batch_tokens,
        seed=config.seed,
        corpora=store.corpora,
        origin=store.origin,
    )


class Batches:
    """The training data of a run as updates, from any place on."""

    def __init__(self, config: RunConfig, prepared: Prepared, device: torch.device) -> None:
        self.config, self.prepared, self.device = config, prepared, device
        self.sampler = make_sampler(config, prepared)
        self._spread: LinkSpread | None = None
        if config.objective.guided_alignment.weight:
            self._spread = LinkSpread(prepared.train, prepared.src_tokenizer, prepared.tgt_tokenizer)

    def updates(self, epoch: int, batch: int) -> Iterator[UpdateBatch]:
        """Updates from batch number `batch` of epoch number `epoch` on."""
        micro_batches = self._micro_batches(epoch, batch)
        if self.device.type == "cuda":
            micro_batches = _in_background(_pinned(micro_batches))
        groups = _groups(micro_batches, self.config.train.accumulate)
        for group, last in _with_last(groups):
            moved = [dataclasses.replace(micro, batch=micro.batch.to(self.device)) for micro in group]
            yield UpdateBatch(moved, last)

    def count_updates(self) -> int | None:
        """Updates until max_epochs or max_updates, whichever comes first; None where neither is set."""
        config = self.config.train
        if config.max_epochs is None:
            return config.max_updates
        batches = self.sampler.num_batches(0) * config.max_epochs  # other epochs differ by a batch or two
        updates = -(-batches // config.accumulate)
        return min(updates, config.max_updates or updates)

    def origin_of_longest(self, micro: MicroBatch) -> str:
        """File and line of the longest pair of a batch, for the message when memory is too small."""
        store = self.prepared.train
        lengths = np.maximum(store.src_lengths[micro.pairs], store.tgt_lengths[micro.pairs])
        return store.origin(int(micro.pairs[int(np.argmax(lengths))]))

    def _micro_batches(self, first_epoch: int, first_batch: int) -> Iterator[MicroBatch]:
        last_epoch = self.config.train.max_epochs
        epochs = itertools.count(first_epoch) if last_epoch is None else range(first_epoch, last_epoch)
        for epoch in epochs:
            start = first_batch if epoch == first_epoch else 0
            for number, pairs in enumerate(self.sampler.batches(epoch, start), start + 1):
                ids = self._ids(pairs, epoch)
                batch = collate(ids)
                if self._spread is not None:
                    batch = dataclasses.replace(batch, links=self._spread(pairs, ids))
                yield MicroBatch(batch, pairs, epoch, number)

    def _ids(self, pairs: np.ndarray, epoch: int) -> list[IdPair]:
        rate = self.config.tokenizer.dropout
        if not rate:
            return load_pairs(self.prepared.train, pairs)
        return load_pairs_dropout(
            self.prepared.train,
            pairs,
            self.prepared.src_tokenizer,
            self.prepared.tgt_tokenizer,
            rate=rate,
            seed=self.config.seed,
            epoch=epoch,
            max_length=self.config.data.clean.max_length,
        )


def _groups(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while group := list(itertools.islice(items, size)):
        yield group


def _with_last(items: Iterator[T]) -> Iterator[tuple[T, bool]]:
    """Each item with whether it is the last one: looks one ahead."""
    current = next(items, None)
    while current is not None:
        following = next(items, None)
        yield current, following is None
        current = following


def _pinned(micro_batches: Iterator[MicroBatch]) -> Iterator[MicroBatch]:
    for micro in micro_batches:
        yield dataclasses.replace(micro, batch=micro.batch.pinned())


def _in_background(items: Iterator[T]) -> Iterator[T]:
    """The same items in the same order, a few of them made ahead by a thread."""
    ready: queue.Queue[tuple[bool, T | BaseException | None]] = queue.Queue(_AHEAD)
    stopped = threading.Event()

    def put(entry: tuple[bool, T | BaseException | None]) -> None:
        while not stopped.is_set():
            try:
                ready.put(entry, timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in items:
                put((True, item))
                if stopped.is_set():
                    return
            put((False, None))
        except BaseException as error:  # handed over, so that the loop sees it where it asked for a batch
            put((False, error))

    thread = threading.Thread(target=work, name="dragoman-batches", daemon=True)
    thread.start()
    try:
        while True:
            more, value = ready.get()
            if isinstance(value, BaseException):
                raise value
            if not more:
                return
            yield value  # type: ignore[misc]
    finally:
        stopped.set()
        thread.join()
