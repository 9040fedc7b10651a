"""When a run validates, saves and stops: its clock, its time budget, and the signals that ask it to stop.

    start-up, reading │ updates, validations, checkpoints            │ last validation, saving, mean,
                      │                                              │ tuning the search, report
    0 ────────────────┴──────────────────────────────────────────────┴─────────────────────────────▶ minutes
                share 0                                       share 1 ◀────────── reserve ──────────▶

The share of the time for updates that has passed, p, brings the learning rate down and says when to validate,
to save and to end. What has to be left at the end, the reserve, follows from what validations and checkpoints
have taken so far. All of it is in the checkpoint: a resumed run goes on with the minutes that are left.

Time is a value that is passed in, so that tests can set it. After Ctrl-C or SIGTERM the update is finished
and saved; a second Ctrl-C leaves at once.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType

from dragoman.runs.config import TrainConfig
from dragoman.system import stop_signals
from dragoman.training.progress import Spent


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


TUNING = 0.05
"""Share of the budget reserved for tuning the search."""
_GUESSED_VALIDATION = 0.02
"""Assumed share of the budget for a validation, before the first one has been timed."""
_SAVE = 0.005
"""Minimum share of the budget reserved for the last checkpoint."""
_MARGIN, _MARGIN_SECONDS = 0.02, 2.0
_MOST_RESERVED, _LATEST_START = 0.4, 0.5
_MOST_VALIDATING = 0.1
"""Maximum share of the time for updates and validations that validations may take."""
_ONE_VALIDATION = 0.02
"""Maximum share of the budget for the translations of one validation."""
_SECONDS_BETWEEN_SAVES = 600.0
COOLING = 0.1
"""Share of the time over which the learning rate falls to 0 after the run has stopped improving."""


class Budget:
    def __init__(self, config: TrainConfig, clock: Clock, spent: Spent) -> None:
        assert config.max_minutes is not None, "without minutes there is no budget"
        self.config, self.clock, self.spent = config, clock, spent
        self.total = 60 * config.max_minutes
        if spent.minutes != config.max_minutes:
            self._begin_anew()
        self._before = spent.seconds
        if self.spent.start is None:
            self.spent.start = min(self.elapsed, _LATEST_START * self.total)
            self.spent.next_save = self._save_distance
        if self.spent.next_validation is None and config.validations is not None:
            self.spent.next_validation = self.share() + self._distance

    def _begin_anew(self) -> None:
        """A resumed run has a new budget: start counting again."""
        self.spent = replace(
            Spent(self.config.max_minutes or 0.0),
            seconds=self.spent.seconds,
            start=self.spent.start,
            update_seconds=self.spent.update_seconds,
            validation_seconds=self.spent.validation_seconds,
            save_seconds=self.spent.save_seconds,
            lowest_loss=self.spent.lowest_loss,
        )

    @property
    def elapsed(self) -> float:
        """Seconds spent, earlier sessions included."""
        return self._before + self.clock.seconds()

    @property
    def left(self) -> float:
        return max(0.0, self.total - self.elapsed)

    @property
    def most_validating(self) -> float:
        """Seconds that the translations of one validation may take."""
        return _ONE_VALIDATION * self.total

    @property
    def reserve(self) -> float:
        """Seconds to reserve for what comes after the last update."""
        config, spent = self.config, self.spent
        known = spent.validation_seconds
        validation = _GUESSED_VALIDATION * self.total if known is None else known
        save = max(_SAVE * self.total, spent.save_seconds)
        needed = validation * (2 if config.average else 1) + save
        if config.tune_search:
            needed += TUNING * self.total
        elif config.report:
            needed += validation
        return min(needed + _MARGIN * self.total + _MARGIN_SECONDS, _MOST_RESERVED * self.total)

    def share(self) -> float:
        """How much of the time for updates has passed when the next one is over: 1 where it is the last. It
        never goes back."""
        start = self.spent.start or 0.0
        passed = self.elapsed + self.spent.update_seconds - start
        self.spent.share = max(self.spent.share, passed / max(self.total - self.reserve - start, 1e-3))
        return self.spent.share

    def validation_is_due(self, share: float) -> bool:
        """Whether a validation is due, by time. One shortly before the end is skipped."""
        due = self.spent.next_validation
        return due is not None and due <= share <= 1 - self._distance / 2

    @property
    def _distance(self) -> float:
        """Interval between validations, so that they do not take too much of the time."""
        assert self.config.validations is not None
        seconds = self.spent.validation_seconds or 0.0
        return max(1 / self.config.validations, seconds / self.total / _MOST_VALIDATING)

    def validated(self, share: float, seconds: float) -> None:
        """Record that the validation at `share` took `seconds`."""
        self.spent.validation_seconds = seconds
        due = self.spent.next_validation
        if due is not None:  # at equal distances, even where updates are long
            self.spent.next_validation = (due if share < due + self._distance else share) + self._distance

    def save_is_due(self, share: float) -> bool:
        return share >= self.spent.next_save

    def saved(self, share: float, seconds: float) -> None:
        self.spent.save_seconds = seconds
        self.spent.next_save = share + self._save_distance

    @property
    def _save_distance(self) -> float:
        return _SECONDS_BETWEEN_SAVES / self.total

    def note(self) -> None:
        """Store the elapsed time; called before a checkpoint is written."""
        self.spent.seconds = self.elapsed


@dataclass(frozen=True)
class Cooling:
    """From `begin` on, the learning rate falls to 0 over a share of the time."""

    begin: float

    def scale(self, share: float) -> float:
        return max(0.0, 1 - (share - self.begin) / COOLING)


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
