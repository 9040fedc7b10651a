"""Time as a value that is passed in, so that tests can set it."""

import time


class Clock:
    """A clock that starts when it is created, or `earlier` seconds before."""

    def __init__(self, earlier: float = 0.0) -> None:
        self._began = time.monotonic() - earlier

    @classmethod
    def began(cls, at: float) -> "Clock":
        """A clock that started at this value of `time.monotonic`."""
        return cls(time.monotonic() - at)

    def seconds(self) -> float:
        """Seconds since the start. Does not synchronise with the device."""
        return time.monotonic() - self._began


class Since(Clock):
    """Seconds on another clock, counted from now."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._then = clock, clock.seconds()

    def seconds(self) -> float:
        return self._clock.seconds() - self._then
