"""Who looks at attention weights while they are computed.

With no tap open the fused kernels run, and no weights exist; with one open they come into being, and it is
shown them. Nothing that is returned changes.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import nn

from dragoman.shapes import Float, Tensor

Tap = Callable[[nn.Module, Float[Tensor, "B H Q M"]], None]


class _Taps(threading.local):
    """Of each thread its own: what others compute meanwhile is none of its business."""

    def __init__(self) -> None:
        self.open: list[tuple[Tap, nn.Module | None]] = []


_taps = _Taps()


@contextmanager
def open_tap(tap: Tap, only: nn.Module | None = None) -> Iterator[None]:
    """Call `tap(module, weights)` for every attention that this thread computes inside the `with` block, or
    for that of one module: then the others keep the fused kernel."""
    _taps.open.append((tap, only))
    try:
        yield
    finally:
        _taps.open.remove((tap, only))


def tap_is_open() -> bool:
    """Whether anybody looks: then weights have to come into being."""
    return bool(_taps.open)


def taps_on(owner: nn.Module) -> list[Tap]:
    """Those that want to see the weights of this module."""
    return [tap for tap, only in _taps.open if only is None or only is owner]
