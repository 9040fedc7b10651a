"""Time as a value that is passed in, so that tests can set it."""

import os
import sys
import time
from pathlib import Path


class Clock:
    """Starts when it is made, or so many seconds earlier."""

    def __init__(self, earlier: float = 0.0) -> None:
        self._began = time.monotonic() - earlier

    @classmethod
    def of_command(cls) -> "Clock":
        """Began with this process: Python and what it imports take seconds too."""
        return cls(_process_age())

    def seconds(self) -> float:
        """Since it began. Nobody waits for a device."""
        return time.monotonic() - self._began


class Since(Clock):
    """Another clock, from now on."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._then = clock, clock.seconds()

    def seconds(self) -> float:
        return self._clock.seconds() - self._then


def _process_age() -> float:
    """Seconds since the process was started; 0 where the system does not tell (Linux does)."""
    if sys.platform != "linux":
        return 0.0
    try:
        fields = Path("/proc/self/stat").read_text("ascii").rpartition(")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # the 22nd field, after the name in parentheses
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0
