"""Taps: callbacks that see attention weights while they are computed.

While no tap is open, fused kernels run and no weights exist. While one is open, weights are computed and
shown to it. Results do not change.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import nn

from dragoman.shapes import Float, Tensor

Tap = Callable[[nn.Module, Float[Tensor, "B H Q M"]], None]


class _Taps(threading.local):
    """One list for each thread."""

    def __init__(self) -> None:
        self.open: list[tuple[Tap, nn.Module | None]] = []


_taps = _Taps()


@contextmanager
def open_tap(tap: Tap, only: nn.Module | None = None) -> Iterator[None]:
    """Call `tap(module, weights)` for every attention that this thread computes inside the `with` block, or
    only for that of one module; the others then keep the fused kernel."""
    _taps.open.append((tap, only))
    try:
        yield
    finally:
        _taps.open.remove((tap, only))


def tap_is_open() -> bool:
    """Whether any tap is open in this thread."""
    return bool(_taps.open)


def taps_on(owner: nn.Module) -> list[Tap]:
    """The taps that see the weights of this module."""
    return [tap for tap, only in _taps.open if only is None or only is owner]
