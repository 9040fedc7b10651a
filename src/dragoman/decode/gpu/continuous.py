"""Continuous batching: sentences occupy slots of fixed shape; a finished one makes room for the next.

    sources, longest first ─▶ encode ─▶ places ─┬─▶ recorded step ─▶ ... ─▶ done? ─▶ collect
                                 ▲              └──────────┘               │
                                 └────────────── free places ◀─────────────┘

The host only replays steps and checks, one step later, which sentences are done. If no kernel handles a past
of variable length, a step is captured for each of a few lengths.

A step is captured as a CUDA graph and replayed: otherwise a step of a small decoder is mostly the host's
time for about a hundred kernel launches.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from dragoman.decode.gpu.continuous_beam import BeamPool, can_run
from dragoman.decode.gpu.open_brackets import OpenBrackets
from dragoman.decode.rules.brackets import BracketTables
from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.config import BeamSearch
from dragoman.decode.search.job import Ended
from dragoman.models.base import EncoderDecoder
from dragoman.models.slots import TransformerSlots, fits, memory_bytes, past_bytes
from dragoman.nn.attention_kernels import tap_is_open


class Replayed:
    """A function without arguments that reads and writes tensors at fixed addresses. On a GPU the first call
    runs it, the second captures it, and later calls replay it; elsewhere it just runs."""

    def __init__(self, function: Callable[[], None], device: torch.device) -> None:
        self.function, self.on_gpu = function, device.type == "cuda"
        self.warm = False
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        if not self.on_gpu or not self.warm:
            self.function()
            self.warm = True
            return
        if self.graph is None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.function()
            self.graph = graph
        self.graph.replay()


class Signal:
    """The content of a tensor `DELAY` steps ago, without a synchronisation: the host runs that many steps
    ahead."""

    DELAY = 1

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor, self.on_gpu = tensor, tensor.device.type == "cuda"
        self.sent = 0
        if self.on_gpu:
            shape = (self.DELAY + 1, *tensor.shape)
            self.copies = torch.zeros(shape, dtype=tensor.dtype, pin_memory=True)
            self.events = [torch.cuda.Event() for _ in range(self.DELAY + 1)]

    def send(self) -> None:
        if self.on_gpu:
            place = self.sent % len(self.events)
            self.copies[place].copy_(self.tensor, non_blocking=True)
            self.events[place].record()
        self.sent += 1

    def received(self) -> torch.Tensor | None:
        """The content after the step `DELAY` steps ago, or None if there were not that many."""
        if not self.on_gpu:
            return self.tensor
        if self.sent <= self.DELAY:
            return None
        place = (self.sent - 1 - self.DELAY) % len(self.events)
        self.events[place].synchronize()
        return self.copies[place]

    def restart(self) -> None:
        """Discard everything that was sent before."""
        self.sent = 0


_MOST_SENTENCES = 512
_SMALL = 64
_SHARE = 0.1
"""Share of the device's memory for the caches of one shape."""
_KEPT = 4
_REFILL_AT = 8
"""Free slots are filled when they are at least one in this many."""


@dataclass(frozen=True)
class Shape:
    sentences: int
    capacity: int
    memory: int


class Continuous:
    """One model, one search, and the slots of one shape."""

    def __init__(
        self, model: EncoderDecoder, config: BeamSearch, shape: Shape, tables: BracketTables | None = None
    ) -> None:
        """`tables` are those of `config.brackets`."""
        self.model, self.shape = model, shape
        weight = next(model.parameters())
        self.device = weight.device
        self.slots = TransformerSlots(model, shape.sentences, config.beam, shape.capacity, shape.memory)
        exact = weight.dtype if weight.dtype == torch.float64 else torch.float32
        sizes = shape.sentences, config.beam, shape.capacity
        brackets = None if tables is None else OpenBrackets(tables, *sizes, self.device)
        copying = self.slots.copying
        followers = [] if copying is None else [copying]
        self.pool = BeamPool(
            model.vocab, config, shape.sentences, shape.capacity, exact, self.device, brackets, followers
        )
        self.steps: dict[int, Replayed] = {}
        self.done = Signal(self.pool.done)
        whole = {"dtype": torch.long, "device": self.device}
        vectors = model.abilities.vectors
        if vectors is None:
            self.sources = torch.zeros(shape.sentences, shape.memory, **whole)
        else:
            self.sources = torch.zeros(shape.sentences, shape.memory, vectors, device=self.device)
        self.src_mask = torch.zeros(shape.sentences, shape.memory, dtype=torch.bool, device=self.device)
        self.limits, self.shortest = (torch.ones(shape.sentences, **whole) for _ in range(2))
        self.everywhere = torch.arange(shape.sentences, device=self.device)
        self.fill_all = Replayed(self._fill_all, self.device)

    def run(self, batch: SearchBatch) -> list[list[Ended]]:
        """The n best hypotheses of every sentence, in the order given."""
        waiting = list(range(len(batch.jobs)))
        found: dict[int, list[Ended]] = {}
        places: list[int | None] = [None] * self.shape.sentences  # which sentence is in which slot
        ages = [0] * self.shape.sentences  # steps since it was inserted: at least its position
        ends, longest = [0] * self.shape.sentences, batch.limits.tolist()  # steps after which it must be done
        while len(found) < len(batch.jobs):
            free = [place for place, sentence in enumerate(places) if sentence is None]
            coming = list(zip(free, waiting, strict=False))
            del waiting[: len(coming)]
            for place, sentence in coming:
                places[place], ages[place], ends[place] = sentence, 0, longest[sentence]
            self._admit(coming, batch)
            finished = self._until_worth(places, ages, ends, bool(waiting), batch)
            rows = torch.tensor(finished, device=self.device)
            for place, ended in zip(finished, self.pool.results(rows), strict=True):
                sentence = places[place]
                assert sentence is not None
                found[sentence], places[place] = ended, None
        return [found[sentence] for sentence in range(len(batch.jobs))]

    def _until_worth(
        self,
        places: list[int | None],
        ages: list[int],
        ends: list[int],
        waiting: bool,
        batch: SearchBatch,
    ) -> list[int]:
        """Step until enough sentences are done: some slots if others are waiting, otherwise all."""
        live = [place for place, sentence in enumerate(places) if sentence is not None]
        enough = min(len(live), max(1, len(places) // _REFILL_AT)) if waiting else len(live)
        oldest = max(ages[place] for place in live)
        most = max(ends[place] - ages[place] for place in live)  # steps until all must be done
        finished, cancellable = live, batch.can_be_cancelled
        self.done.restart()
        for number in range(1, most + 1):
            if cancellable:
                self._let_go([place for place in live if batch.jobs[places[place] or 0].cancelled()])
            self._step(oldest + number)
            self.done.send()
            done = self.done.received()
            if done is not None and int(done.sum()) >= enough:  # free slots count as done
                flags = done.tolist()
                found = [place for place in live if flags[place]]
                if len(found) >= enough:
                    finished, most = found, number
                    break
        for place in live:
            ages[place] += most
        return finished

    def _let_go(self, cancelled: list[int]) -> None:
        """Mark them as done, with the hypotheses that they have."""
        if cancelled:
            self.pool.done[torch.tensor(cancelled, device=self.device)] = True

    def _step(self, used: int) -> None:
        room = self.shape.capacity if self.slots.by_kernels else min(_rounded(used), self.shape.capacity)
        if room not in self.steps:
            self.steps[room] = Replayed(partial(self._one_position, room), self.device)
        self.steps[room]()

    def _one_position(self, used: int) -> None:
        pool = self.pool
        hidden = self.slots.step(pool.last, pool.position, pool.ancestors, used)
        pool.step(self.slots.scores(hidden, pool.last).to(pool.sums.dtype))

    def _admit(self, coming: list[tuple[int, int]], batch: SearchBatch) -> None:
        if not coming:
            return
        rows, sentences = torch.tensor(coming, device=self.device).unbind(dim=1)
        source = (batch.src_ids, batch.src_mask, batch.limits, batch.shortest)
        src_ids, src_mask, limits, shortest = (part[sentences] for part in source)
        if len(coming) < len(self.everywhere):
            self.slots.admit(rows, self.model.encode(src_ids, src_mask))
            self.pool.admit(rows, limits, shortest)
            return
        width = src_ids.size(1)
        self.sources.fill_(self.model.vocab.pad_id)[:, :width] = src_ids  # rows are all slots in order
        self.src_mask.fill_(False)[:, :width] = src_mask
        self.limits.copy_(limits)
        self.shortest.copy_(shortest)
        self.fill_all()

    def _fill_all(self) -> None:
        self.slots.admit(self.everywhere, self.model.encode(self.sources, self.src_mask))
        self.pool.admit(self.everywhere, self.limits, self.shortest)


class Rooms:
    """The most recently used slots, by model, search and shape. Moved weights count as another model."""

    def __init__(self) -> None:
        self.kept: OrderedDict[object, Continuous] = OrderedDict()

    def take(self, models: Sequence[EncoderDecoder], config: BeamSearch) -> bool:
        """Whether a search is supported here; recorded attention and autocast are not."""
        return (
            len(models) == 1
            and can_run(config)
            and fits(models[0])
            and not models[0].training
            and not tap_is_open()
            and not torch.is_autocast_enabled("cuda")
        )

    def search(self, model: EncoderDecoder, batch: SearchBatch, config: BeamSearch) -> list[list[Ended]]:
        if config.beam == 1:
            config = replace(config, stop="complete")  # greedy search stops at the first `</s>`
        shape = shape_for(model, config, len(batch.jobs), int(batch.limits.max()), batch.src_ids.size(1))
        return self._room(model, config, shape, batch.brackets).run(batch)

    def _room(
        self, model: EncoderDecoder, config: BeamSearch, shape: Shape, tables: BracketTables | None
    ) -> Continuous:
        key = (tuple(p.data_ptr() for p in model.parameters()), config, shape)
        if key not in self.kept:
            while len(self.kept) >= _KEPT:
                self.kept.popitem(last=False)
            self.kept[key] = Continuous(model, config, shape, tables)
        self.kept.move_to_end(key)
        return self.kept[key]


def shape_for(model: EncoderDecoder, config: BeamSearch, sentences: int, longest: int, memory: int) -> Shape:
    """Few shapes, so that captured graphs are reused. A small batch has a slot for every sentence; in a large
    one the rest waits for free slots."""
    capacity = _rounded(longest)
    if model.abilities.vectors is None:  # a model that reads vectors has positions for as many as there are
        memory = _rounded(memory)
    bytes_each = config.beam * capacity * past_bytes(model) + memory_bytes(model, memory)
    most = max(1, min(_MOST_SENTENCES, int(_memory_of(model) * _SHARE / bytes_each)))
    wanted = min(sentences, most)
    places = 1 << (wanted.bit_length() - 1)  # the largest power of two that is not above
    if places < wanted <= _SMALL and 2 * places <= most:
        places *= 2
    return Shape(places, capacity, memory)


def _memory_of(model: EncoderDecoder) -> int:
    device = next(model.parameters()).device
    return torch.cuda.mem_get_info(device)[1] if device.type == "cuda" else 1 << 30


def _rounded(length: int) -> int:
    """Round up to a multiple of 16, beyond 64 to a multiple of a quarter of the power of two below."""
    step = max(16, 1 << max(0, (length - 1).bit_length() - 3))
    return -(-length // step) * step
