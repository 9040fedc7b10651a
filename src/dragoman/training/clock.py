"""Time as a value that is passed in, so that tests can set it."""

import os
import sys
import time
from pathlib import Path


class Clock:
    """A clock that starts when it is created, or `earlier` seconds before."""

    def __init__(self, earlier: float = 0.0) -> None:
        self._began = time.monotonic() - earlier

    @classmethod
    def of_command(cls) -> "Clock":
        """A clock that started with this process, so that start-up and imports count."""
        return cls(_process_age())

    def seconds(self) -> float:
        """Seconds since the start. Does not synchronise with the device."""
        return time.monotonic() - self._began


class Since(Clock):
    """Seconds on another clock, counted from now."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._then = clock, clock.seconds()

    def seconds(self) -> float:
        return self._clock.seconds() - self._then


def _process_age() -> float:
    """Seconds since the process was started (Linux); 0 on systems that do not say."""
    if sys.platform != "linux":
        return 0.0
    try:
        fields = Path("/proc/self/stat").read_text("ascii").rpartition(")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # the 22nd field, after the name in parentheses
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0
