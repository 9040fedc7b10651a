"""The open connections of a server: their limit, and which one is closed when it is reached."""

import asyncio
import enum
from collections.abc import Callable, Iterator
from typing import Protocol

from dragoman.serve.metrics import Metrics
from dragoman.serve.seldom import Seldom

SAID_EVERY_S = 10.0


class ConnectionStage(enum.Enum):
    """State of a connection. If there are too many connections, those in the first states are closed first,
    and in each state the one that entered it first. A connection with a request in progress is never
    closed."""

    ENDING = enum.auto()
    """The last answer is sent. Further input is discarded."""
    IDLE = enum.auto()
    """Between two requests."""
    NEW = enum.auto()
    """Nothing has been received yet."""
    HEAD = enum.auto()
    """The head of a request is being received."""
    BODY = enum.auto()
    SENDING = enum.auto()
    """The answer is ready, and the client has not received all of it."""
    WORK = enum.auto()


class Member(Protocol):
    def drop(self) -> bool:
        """Close the connection now, unless it has unread input. Returns whether it was closed."""
        ...

    def drain(self) -> None:
        """Close the connection as soon as nothing is in progress on it."""
        ...

    def abort(self) -> None: ...


class Connections:
    def __init__(self, most: int, metrics: Metrics) -> None:
        self.most, self.draining = most, False
        self.opening = 0
        """Number of connections that are accepted but not yet registered."""
        self.buffer = bytearray(1 << 16)
        """Shared read buffer. Its contents are used at once, in the same callback."""
        self.none_left = asyncio.Event()
        self._when_room: Callable[[], None] | None = None
        self._at: dict[ConnectionStage, dict[Member, None]] = {stage: {} for stage in ConnectionStage}
        self._stage: dict[Member, ConnectionStage] = {}
        self._metrics = metrics
        self._dropped = Seldom("%d connections closed to make room for others", SAID_EVERY_S)
        self._changed()

    def __len__(self) -> int:
        return len(self._stage)

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._stage))

    @property
    def busy(self) -> int:
        """Number of connections with a request in progress."""
        return len(self._at[ConnectionStage.WORK])

    def stage(self, member: Member) -> ConnectionStage | None:
        return self._stage.get(member)

    def move(self, member: Member, stage: ConnectionStage) -> None:
        self._at.get(self._stage.get(member, stage), {}).pop(member, None)
        self._at[stage][member] = None
        self._stage[member] = stage
        self._changed()

    def remove(self, member: Member) -> None:
        if (stage := self._stage.pop(member, None)) is not None:
            del self._at[stage][member]
            self._changed()

    def make_room(self) -> bool:
        """Close one connection. Returns false if all have a request in progress."""
        for stage in ConnectionStage:
            if stage is ConnectionStage.WORK:
                return False
            for member in list(self._at[stage]):
                if member.drop():
                    self.remove(member)
                    self._metrics.count("dragoman_dropped_connections_total")
                    self._dropped.note()
                    return True
        return False

    def when_room(self, call: Callable[[], None]) -> None:
        """Call `call` once, as soon as fewer connections than the limit have a request in progress."""
        self._when_room = call

    def _changed(self) -> None:
        if self._when_room is not None and self.busy < self.most:
            call, self._when_room = self._when_room, None
            call()
        (self.none_left.clear if self._stage else self.none_left.set)()
