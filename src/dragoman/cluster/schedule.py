"""Chunks of lines to workers, and their results back in the order of the chunks.

    chunks ─▶ waiting ─▶ worker ─▶ results ─▶ in order        at most two chunks per worker are in flight
                 ▲          │
                 └──────────┘  the worker is gone, or has failed on the chunk

A chunk whose worker is lost with its machine is sent to another one. A chunk on which two workers fail,
though their machines are up, is cut in halves until the lines are found that fail alone. Then the whole chunk
is done once more, with None in place of these. So a chunk has one result, whatever happens to the workers:
that of all its lines together, or of those that can be done.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from dragoman.errors import UserError

T = TypeVar("T")
_TRIES = 2
"""How often workers may fail on a chunk, or on one line alone."""
_ROUNDS = 3
"""How often a chunk is searched for lines that fail."""
_MOST_FAILED = 32
"""Lines of a chunk. Where more fail, it is not because of the lines."""
_FAILED_STARTS = 5
"""So many workers, and two for each that is wanted, may end before they are ready while nothing
is done."""
_MOST_SILENT = 120
"""Empty replies in a row while no worker is ready."""


class Ready(NamedTuple):
    """A worker can be given work."""


class Made(NamedTuple):
    value: Any


class Failed(NamedTuple):
    """The work raised an error; the worker goes on, unless it is `broken`."""

    reason: str
    broken: bool = False


class Gone(NamedTuple):
    """The worker has ended; `lost`: with its machine."""

    reason: str
    lost: bool = False


class Refused(NamedTuple):
    """A mistake of the user: the work ends."""

    reason: str


Reply = Ready | Made | Failed | Gone | Refused


class WorkerGroup(Protocol):
    def wanted(self) -> int:
        """How many workers there may be at the moment."""
        ...

    def start(self) -> Hashable:
        """A new worker; it replies `Ready` when it is."""
        ...

    def send(self, worker: Any, items: Sequence[Any]) -> None: ...

    def replies(self) -> list[tuple[Any, Reply]]:
        """The replies that have come; after a timeout none, if none has."""
        ...

    def stop(self, worker: Any) -> None: ...


@dataclass
class _Chunk(Generic[T]):
    number: int
    first: int
    """The line that it begins with."""
    items: list[T | None]
    fails: int = 0
    rounds: int = 0
    searched: int = 0
    """Parts that are being tried."""


@dataclass
class _Task(Generic[T]):
    chunk: _Chunk[T]
    start: int
    end: int
    fails: int = field(default=0)

    @property
    def whole(self) -> bool:
        return not self.chunk.searched

    @property
    def items(self) -> list[T | None]:
        return self.chunk.items[self.start : self.end]


class Schedule(Generic[T]):
    """The state of one map over chunks."""

    def __init__(
        self, workers: WorkerGroup, chunks: Iterable[list[T]], begun: int, tell: Callable[[str], None]
    ) -> None:
        self._workers, self._tell = workers, tell
        self._chunks, self._line = iter(chunks), begun + 1
        self._read = 0
        self._ended = False
        self._again: deque[_Task[T]] = deque()
        self._busy: dict[Any, _Task[T]] = {}
        self._idle: list[Any] = []
        self._starting: set[Any] = set()
        self._results: dict[int, Any] = {}
        self._most = self._failed_starts = self._silence = 0

    def results(self) -> Iterator[Any]:
        following = 0
        while True:
            self._hand_out(following)  # first, so that workers go on while a result is written
            if following in self._results:
                yield self._results.pop(following)
                following += 1
                continue
            if not self._busy and not self._again and self._ended:
                return
            replies = self._workers.replies()
            self._silence = 0 if replies or self._busy else self._silence + 1
            if self._silence > _MOST_SILENT:
                raise UserError("--cluster: no machine of the cluster has room for this work")
            for worker, reply in replies:
                self._note(worker, reply)

    def _hand_out(self, following: int) -> None:
        there = len(self._busy) + len(self._idle) + len(self._starting)
        wanted = self._workers.wanted()
        self._most = max(self._most, wanted)
        for _ in range(there, wanted):
            self._starting.add(self._workers.start())
        while self._idle and (task := self._next(following)) is not None:
            worker = self._idle.pop()
            self._busy[worker] = task
            self._workers.send(worker, task.items)

    def _next(self, following: int) -> _Task[T] | None:
        if self._again:
            return self._again.popleft()
        ahead = 2 * (len(self._busy) + len(self._idle))
        if self._ended or self._read - following >= ahead:
            return None
        items = next(self._chunks, None)
        if items is None:
            self._ended = True
            return None
        chunk = _Chunk(self._read, self._line, [*items])
        self._read += 1
        self._line += len(items)
        return _Task(chunk, 0, len(items))

    def _note(self, worker: Any, reply: Reply) -> None:
        was_starting = worker in self._starting
        self._starting.discard(worker)
        task = self._busy.pop(worker, None)
        if worker in self._idle and not isinstance(reply, Ready):
            self._idle.remove(worker)
        match reply:
            case Refused(reason):
                raise UserError(reason)
            case Ready():
                self._idle.append(worker)
            case Made(value):
                self._failed_starts = 0
                self._idle.append(worker)
                if task is not None:
                    self._finish(task, value)
            case Failed(reason, broken):
                self._workers.stop(worker) if broken else self._idle.append(worker)
                if task is not None:
                    self._fail(task, reason)
            case Gone(reason, lost):
                if task is not None and lost:
                    self._again.appendleft(task)
                elif task is not None:
                    self._fail(task, reason)
                self._failed_starts += was_starting
                if self._failed_starts > _FAILED_STARTS + 2 * self._most and not self._busy:
                    raise UserError(f"--cluster: workers end before they can do anything: {reason}")

    def _finish(self, task: _Task[T], value: Any) -> None:
        if task.whole:
            self._results[task.chunk.number] = value
        else:
            self._end_part(task)

    def _fail(self, task: _Task[T], reason: str) -> None:
        chunk = task.chunk
        if task.whole:
            chunk.fails += 1
            if chunk.fails < _TRIES:
                self._again.appendleft(task)
            elif chunk.rounds == _ROUNDS:
                where = f"lines {chunk.first} to {chunk.first + len(chunk.items) - 1}"
                raise UserError(f"--cluster: {where} fail together, and none of them alone: {reason}")
            else:
                chunk.fails, chunk.rounds = 0, chunk.rounds + 1
                chunk.searched = 1
                self._halve(task)
            return
        if task.end - task.start > 1:
            self._halve(task)
            return
        task.fails += 1
        if task.fails < _TRIES:
            self._again.appendleft(task)
            return
        item = chunk.items[task.start]
        if item is not None:
            chunk.items[task.start] = None
            line = getattr(item, "line", chunk.first + task.start)
            self._tell(f"line {line:,} is left out: {reason}")
            if chunk.items.count(None) > _MOST_FAILED:
                raise UserError(f"--cluster: every machine fails, at line {line:,} and others: {reason}")
        self._end_part(task)

    def _halve(self, task: _Task[T]) -> None:
        middle = (task.start + task.end) // 2
        for start, end in ((task.start, middle), (middle, task.end)):
            if start < end:
                task.chunk.searched += 1
                self._again.append(_Task(task.chunk, start, end))
        self._end_part(task)

    def _end_part(self, task: _Task[T]) -> None:
        """When all parts have been tried, the whole chunk is done once more."""
        task.chunk.searched -= 1
        if not task.chunk.searched:
            self._again.append(_Task(task.chunk, 0, len(task.chunk.items)))
