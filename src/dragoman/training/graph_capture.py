"""CUDA graphs of forward and backward passes: launched once per update instead of kernel by kernel.

An update of a Transformer-base is some eight hundred kernels of a few microseconds each. Launching them
takes the host longer than they run. Packed batches have few distinct shapes, and blocks of text one. The
first batch of a shape runs kernel by kernel, the second is captured as a CUDA graph, and later ones replay
it.
"""

import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from dragoman.data.batch import PairBatch
from dragoman.data.packed import Batch, PackedPairs, PackedText
from dragoman.shapes import Float, Tensor

Sums = tuple[Float[Tensor, ""], Float[Tensor, ""]]
"""Loss and negative log-likelihood of a batch."""
Steady = PackedPairs | PackedText | PairBatch
"""Batches whose shapes repeat."""
_MOST = 64
"""Maximum number of graphs; batches of further shapes run kernel by kernel."""


@dataclass(frozen=True)
class _Recording:
    graph: torch.cuda.CUDAGraph
    batch: Any
    """The static input buffers of the graph."""
    sums: Sums
    gradients: list[Tensor | None] | None
    """Gradient buffers that the graph overwrites; None if it accumulates."""


class GraphRecorder:
    """Forward and backward pass of a batch, whose gradients are added to those that are there. Where every
    update is of one batch they are written `anew`: no zeros are filled in, and nothing is added to them. Each
    form has its own gradients then, so that is for batches of few forms.

    All recordings share their memory: one is played at a time, and its sums are read before the next.
    """

    def __init__(
        self, passed: Callable[[Batch], Sums], parameters: Sequence[Tensor], anew: bool = False
    ) -> None:
        self._passed, self._parameters, self.anew = passed, parameters, anew
        self._met: set[tuple[int, ...]] = set()
        self._recordings: dict[tuple[int, ...], _Recording] = {}
        self._gradients: list[Tensor] = []
        self._pool: Any = None
        self._working = True

    def __call__(self, batch: Steady) -> Sums:
        if not self.anew:
            self._put_gradients()
        form = batch.form
        if form not in self._recordings and not self._record(batch, form):
            return self._passed(batch)
        found = self._recordings[form]
        found.batch.copy_(batch)
        found.graph.replay()
        if found.gradients is not None:
            for parameter, gradient in zip(self._parameters, found.gradients, strict=True):
                parameter.grad = gradient
        return found.sums

    def _put_gradients(self) -> None:
        """Point the parameters' gradients to the buffers of the graphs, in case they were replaced."""
        if not self._gradients:
            self._gradients = [torch.zeros_like(parameter) for parameter in self._parameters]
        for parameter, own in zip(self._parameters, self._gradients, strict=True):
            if parameter.grad is not own:
                own.zero_() if parameter.grad is None else own.copy_(parameter.grad)
                parameter.grad = own

    def _record(self, batch: Steady, form: tuple[int, ...]) -> bool:
        """Whether there is a recording now: not of a form that is new or rare, nor of a batch that is more
        than its form."""
        new, too_many = form not in self._met, len(self._recordings) >= _MOST
        self._met.add(form)
        if new or too_many or not batch.steady or not self._working:
            return False
        graph, own = torch.cuda.CUDAGraph(), batch.moved(torch.clone)
        try:
            # The thread that prepares batches takes page-locked memory meanwhile: that is no part of it.
            with _uncollected(), torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                sums = self._passed(own)
        except RuntimeError as error:
            self._give_up(error)
            return False
        self._pool = graph.pool()
        gradients = [parameter.grad for parameter in self._parameters] if self.anew else None
        self._recordings[form] = _Recording(graph, own, sums, gradients)
        return True

    def _give_up(self, error: RuntimeError) -> None:
        """Go on without any recording: the generator is left in the middle of one, and those that are there
        would draw from it."""
        self._working = False
        self._recordings.clear()
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        fresh = torch.Generator(generator.device).manual_seed(generator.initial_seed())
        generator.graphsafe_set_state(fresh.graphsafe_get_state())
        for parameter in self._parameters if self.anew else ():
            parameter.grad = None  # the buffers were never written
        first: BaseException = error
        while first.__context__ is not None:  # the first error says more than the end of a failed capture
            first = first.__context__
        warnings.warn(f"updates cannot be recorded, so they go on kernel by kernel: {first}", stacklevel=3)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Nothing is collected inside: what is thrown away may be another recording, or memory that is asked for
    at the device, and a recording may not survive that."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
