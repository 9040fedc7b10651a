"""Capture work of fixed shape as a CUDA graph and replay it: otherwise a step of a small decoder is mostly
the host's time for about a hundred kernel launches."""

from collections.abc import Callable

import torch


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
