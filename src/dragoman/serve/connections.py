"""All open connections of a server: how many there may be, and which goes when there are too many."""

import asyncio
import enum
from collections.abc import Callable, Iterator
from typing import Protocol

from dragoman.serve.metrics import Metrics
from dragoman.serve.seldom import Seldom

SAID_EVERY_S = 10.0


class ConnectionStage(enum.Enum):
    """What a connection is at. Where there are too many, those of the first stages go first, and in each the
    one that came to it first. Whoever is being worked for stays."""

    ENDING = enum.auto()
    """Its last answer is sent; what still comes is thrown away."""
    IDLE = enum.auto()
    """Between two requests."""
    NEW = enum.auto()
    """Nothing has come on it yet."""
    HEAD = enum.auto()
    """The head of a request is coming."""
    BODY = enum.auto()
    SENDING = enum.auto()
    """The answer is there, and the client has not taken all of it."""
    WORK = enum.auto()


class Member(Protocol):
    def drop(self) -> bool:
        """Close it now, unless something has come on it that was not read yet; whether it was closed."""
        ...

    def drain(self) -> None:
        """Close it as soon as nothing is under way on it."""
        ...

    def abort(self) -> None: ...


class Connections:
    def __init__(self, most: int, metrics: Metrics) -> None:
        self.most, self.draining = most, False
        self.opening = 0
        """Connections that are accepted and not here yet."""
        self.buffer = bytearray(1 << 16)
        """What is read from a socket is here until it is looked at, which is in the same moment."""
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
        """How many are being worked for."""
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
        """Close one connection; false where all are being worked for."""
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
        """Once, as soon as one of them is not being worked for any more, or has gone."""
        self._when_room = call

    def _changed(self) -> None:
        if self._when_room is not None and self.busy < self.most:
            call, self._when_room = self._when_room, None
            call()
        (self.none_left.clear if self._stage else self.none_left.set)()
