"""Ctrl-C and SIGTERM: finish the update, save, leave. A second Ctrl-C leaves at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dragoman.system import stop_signals


class StopRequest:
    """Set when the run has been asked to stop."""

    def __init__(self) -> None:
        self.signal: int | None = None

    @property
    def name(self) -> str:
        return "Ctrl-C" if self.signal == signal.SIGINT else "SIGTERM"

    @property
    def exit_status(self) -> int:
        """The exit status that shells use: 130 after Ctrl-C, 143 after SIGTERM."""
        assert self.signal is not None
        return 128 + self.signal


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Inside, the signals only set the request; afterwards the previous handlers are restored.

    Only the main thread may handle signals: in another one the request is simply never set.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def handle(number: int, _frame: FrameType | None) -> None:
        if request.signal is not None:
            raise KeyboardInterrupt  # safe: the last checkpoint is always complete
        request.signal = number

    before = {number: signal.signal(number, handle) for number in stop_signals()}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
