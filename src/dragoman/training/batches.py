"""Turns the sampler's order into batches on the device, one update at a time.

What an update learns from is a pure function of (seed, epoch, place in the epoch). The number of processes
does not matter: they divide the batches of an update among them. On a GPU a thread prepares the next batches
in page-locked memory while the GPU works; the order is the same with and without it.
"""

import dataclasses
import itertools
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch

from dragoman.data.batch import PairBatch, TextBatch
from dragoman.data.packed import Batch, PackedPairs, PackedText
from dragoman.data.sampler import FIRST, BucketSampler, TrackSampler, Window, tempered
from dragoman.learning import learning_of
from dragoman.learning.base import Examples
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Corpus
from dragoman.training.distributed import ALONE, Crew

T = TypeVar("T")
_AHEAD = 8
_COUNTED = 16
"""Windows of a large corpus that are used to estimate its number of batches."""
_ALIGNED = 64
"""The length of a packed row is a multiple of this."""


@dataclass(frozen=True)
class MicroBatch:
    batch: Batch
    pairs: np.ndarray
    """Indices of the pairs in the training data."""
    epoch: int
    number: int
    """Its place in the update, whichever process takes it. Random numbers (dropout) are derived from it."""
    counts: bool = True
    """False for a placeholder batch of a process that has one batch fewer than the others."""


@dataclass(frozen=True)
class UpdateBatch:
    """The batches of one update that this process takes."""

    micro_batches: list[MicroBatch]
    epoch: int
    next_batch: int
    """Batches of this epoch used after the update: where a resumed run continues."""
    last: bool
    """Whether this is the last update of the epoch."""
    window: Window = FIRST
    """The window that contains the last of these batches."""


@dataclass(frozen=True)
class _Drawn:
    """A batch that is planned but not read yet."""

    pairs: np.ndarray
    epoch: int
    next_batch: int
    window: Window


def make_sampler(config: RunConfig, examples: Examples) -> BucketSampler | TrackSampler:
    if config.objective.carry:
        return TrackSampler(len(examples), config.train.batch_tokens // config.objective.block)
    return BucketSampler(
        examples.src_lengths,
        examples.tgt_lengths,
        batch_tokens=config.train.batch_tokens,
        seed=config.seed,
        corpora=tempered(examples.corpora, config.data.temperature, learning_of(config).mixed(config)),
        origin=examples.origin,
    )


class Batches:
    """The training data of a run as updates, starting anywhere."""

    def __init__(
        self,
        config: RunConfig,
        prepared: Corpus,
        device: torch.device,
        crew: Crew = ALONE,
        packed: bool = False,
    ) -> None:
        self.config, self.device, self.crew, self.packed = config, device, crew, packed
        learning = learning_of(config)
        self.examples = learning.examples(config, prepared)
        self.sampler = make_sampler(config, self.examples)
        self._multiple = 0
        if device.type == "cuda":
            lengths = learning.packed_lengths * _ALIGNED
            self._multiple = -(-config.train.batch_tokens // lengths) * _ALIGNED

    def updates(self, epoch: int, batch: int, window: Window = FIRST) -> Iterator[UpdateBatch]:
        """Updates from batch number `batch` of epoch number `epoch` on, which is in `window` or after it."""
        updates = self._shares(self._drawn(epoch, batch, window))
        if self.packed:
            updates = (_packed(update, self._multiple) for update in updates)
        if self.device.type == "cuda":
            each = -(-self.config.train.accumulate // self.crew.size)
            updates = _in_background(map(_pinned, updates), max(2, _AHEAD // each))
        for update in updates:
            yield _with_batches(update, lambda batch: batch.to(self.device))

    def count_updates(self) -> int | None:
        """Updates until max_epochs or max_updates, whichever comes first; None where neither is set."""
        config = self.config.train
        if config.max_epochs is None:
            return config.max_updates
        batches = self.sampler.num_batches(0, _COUNTED)  # other epochs differ by a batch or two
        updates = -(-batches * config.max_epochs // config.accumulate)
        return min(updates, config.max_updates or updates)

    def origin_of_longest(self, micro: MicroBatch) -> str:
        """File and line of the longest pair of a batch, for the message when memory is too small."""
        examples = self.examples
        lengths = np.maximum(examples.src_lengths[micro.pairs], examples.tgt_lengths[micro.pairs])
        return examples.origin(int(micro.pairs[int(np.argmax(lengths))]))

    def _shares(self, drawn: Iterator[_Drawn]) -> Iterator[UpdateBatch]:
        """This process's share of every update; only its own batches are read."""
        rank, size = self.crew.rank, self.crew.size
        for group, last in _with_last(_groups(drawn, self.config.train.accumulate)):
            taken = deal([self._cost(each.pairs) for each in group], size)[rank] if size > 1 else None
            numbers = range(len(group)) if taken is None else taken
            own = [self._read(group[number], number) for number in numbers]
            if taken is not None:
                own = own or [dataclasses.replace(self._read(group[0], 0), counts=False)]
                idle = dataclasses.replace(own[0], counts=False)
                own += [idle] * (-(-len(group) // size) - len(own))
            yield UpdateBatch(own, group[-1].epoch, group[-1].next_batch, last, group[-1].window)

    def _read(self, drawn: _Drawn, number: int) -> MicroBatch:
        batch = self.examples.batch(drawn.pairs, drawn.epoch)
        return MicroBatch(batch, drawn.pairs, drawn.epoch, number)

    def _cost(self, pairs: np.ndarray) -> int:
        """Number of positions of a batch, padding included."""
        src, tgt = self.examples.src_lengths, self.examples.tgt_lengths
        return len(pairs) * int(src[pairs].max() + tgt[pairs].max() + 2)

    def _drawn(self, first_epoch: int, first_batch: int, first_window: Window) -> Iterator[_Drawn]:
        last_epoch = self.config.train.max_epochs
        epochs = itertools.count(first_epoch) if last_epoch is None else range(first_epoch, last_epoch)
        for epoch in epochs:
            start, window = (first_batch, first_window) if epoch == first_epoch else (0, FIRST)
            for number, (pairs, here) in enumerate(self.sampler.placed(epoch, start, window), start + 1):
                yield _Drawn(pairs, epoch, number, here)


def deal(costs: Sequence[int], processes: int) -> list[list[int]]:
    """The numbers of the batches that each process takes: as many each as can be, and like work. The dearest
    go round the processes first, the next ones round them backwards, and so on."""
    order = sorted(range(len(costs)), key=lambda number: -costs[number])
    hands: list[list[int]] = [[] for _ in range(processes)]
    for place, number in enumerate(order):
        turn, seat = divmod(place, processes)
        hands[seat if turn % 2 == 0 else processes - 1 - seat].append(number)
    return [sorted(hand) for hand in hands]


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


def _packed(update: UpdateBatch, multiple: int) -> UpdateBatch:
    def pack(batch: Batch) -> Batch:
        if isinstance(batch, TextBatch):
            return PackedText.of(batch, multiple)
        assert isinstance(batch, PairBatch), "only pairs and texts are packed"
        return PackedPairs.of(batch, multiple)

    return _with_batches(update, pack)


def _pinned(update: UpdateBatch) -> UpdateBatch:
    """Copy the update to page-locked memory, from which transfers to the GPU are asynchronous."""
    return _with_batches(update, lambda batch: batch.pinned())


def _with_batches(update: UpdateBatch, change: Callable[[Batch], Batch]) -> UpdateBatch:
    changed = [dataclasses.replace(micro, batch=change(micro.batch)) for micro in update.micro_batches]
    return dataclasses.replace(update, micro_batches=changed)


def _in_background(items: Iterator[T], ahead: int = _AHEAD) -> Iterator[T]:
    """The items in the same order, prefetched by a thread."""
    ready: queue.Queue[tuple[bool, T | BaseException | None]] = queue.Queue(ahead)
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
        except BaseException as error:  # re-raised in the consumer
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
