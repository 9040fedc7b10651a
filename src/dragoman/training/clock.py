"""Time as a value that is passed in, so that tests can set it."""

import time


class Clock:
    """Starts when it is made, or so many seconds earlier."""

    def __init__(self, earlier: float = 0.0) -> None:
        self._began = time.monotonic() - earlier

    @classmethod
    def began(cls, at: float) -> "Clock":
        """Began at this time by `time.monotonic`."""
        return cls(time.monotonic() - at)

    def seconds(self) -> float:
        """Since it began. Nobody waits for a device."""
        return time.monotonic() - self._began


class Since(Clock):
    """Another clock, from now on."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._then = clock, clock.seconds()

    def seconds(self) -> float:
        return self._clock.seconds() - self._then
