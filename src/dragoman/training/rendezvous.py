"""How the processes of a run find each other, and how rank 0 broadcasts: through keys in a shared store.

    rank 1   hello/1 = b7 ──▶ rank 0   welcome/1 = b7 c4 ──▶ rank 1   here/1 = b7 c4 ──▶ rank 0   all/c4

torchrun keeps its store when it restarts processes, with all that dead processes have written. So each
process chooses a new unique name, and reads only messages to that name. The name of rank 0 (c4) names the
attempt.

Rank 0 sends a heartbeat. Other processes wait for it as long as the heartbeat continues, even for hours. Time
spent waiting is the sum of sleeps, not wall-clock time: a suspended machine does not cause a timeout.
"""

import os
import threading
import time
import uuid
from collections.abc import Callable
from signal import SIGTERM
from typing import Protocol

TIMEOUT = 60.0
"""Timeout in seconds: without a heartbeat for this long, a process counts as lost."""
TIMEOUT_WHEN_STOPPING = 6.0
"""The timeout after a request to stop. Rank 0 may have been killed then: torchrun signals the others, and
kills them too if they take long."""
_BEAT = 1.0
_SHORTEST_SLEEP, _LONGEST_SLEEP = 0.0005, 0.05


class ProcessLost(RuntimeError):
    """Another process did not answer within the timeout."""


class Store(Protocol):
    """The part of torch.distributed's Store that is used."""

    def set(self, key: str, value: str, /) -> object: ...
    def get(self, key: str, /) -> bytes: ...
    def check(self, keys: list[str], /) -> bool: ...
    def add(self, key: str, amount: int, /) -> int: ...
    def delete_key(self, key: str, /) -> bool: ...
    def compare_set(self, key: str, expected: str, desired: str, /) -> bytes: ...


def read(store: Store, key: str) -> str | None:
    """Read a key without waiting; None if it is not set."""
    return store.get(key).decode() if store.check([key]) else None


class Polling:
    """Polling with growing sleeps, until they add up to `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self._spent, self._sleep = seconds, 0.0, _SHORTEST_SLEEP

    def restart(self) -> None:
        self._spent = 0.0

    def wait(self) -> bool:
        """Sleep once. Returns False after the timeout."""
        time.sleep(self._sleep)
        self._spent += self._sleep
        self._sleep = min(2 * self._sleep, _LONGEST_SLEEP)
        return self._spent < self.seconds


def meet(store: Store, rank: int, size: int, timeout: float = TIMEOUT) -> str:
    """Wait until all processes of this attempt have joined. Returns the unique name of the attempt."""
    own, waiting = uuid.uuid4().hex, Polling(timeout)
    if rank == 0:
        missing = _welcome(store, own, size, waiting)
        if missing:
            raise ProcessLost(
                f"of {size} processes {_listed(missing)} did not come within {timeout:g} s, so all stop"
            )
        store.set(f"all/{own}", "")
        return own
    store.set(f"hello/{rank}", own)
    while True:
        known_as, _, attempt = (read(store, f"welcome/{rank}") or "").partition(" ")
        if known_as == own:
            store.set(f"here/{rank}", f"{own} {attempt}")
            if store.check([f"all/{attempt}"]):
                return attempt
        if not waiting.wait():
            raise ProcessLost(f"process {rank} of {size} was not called within {timeout:g} s, so it stops")


def _welcome(store: Store, own: str, size: int, waiting: Polling) -> list[int]:
    """On rank 0, welcome processes until all have answered. Returns the ranks that did not in time.
    Processes of an earlier attempt may be welcomed too; they never answer, and living ones replace them."""
    answers: dict[int, str] = {}
    missing = list(range(1, size))
    while missing:
        for rank in missing:
            name = read(store, f"hello/{rank}")
            if name is not None and answers.get(rank) != f"{name} {own}":
                answers[rank] = f"{name} {own}"
                store.set(f"welcome/{rank}", answers[rank])
        missing = [r for r in missing if r not in answers or read(store, f"here/{r}") != answers[r]]
        if missing and not waiting.wait():
            break
    return missing


def _listed(ranks: list[int]) -> str:
    shown = ", ".join(map(str, ranks[:8]))
    return f"{shown} and {len(ranks) - 8} more" if len(ranks) > 8 else shown


class Heartbeat:
    """A thread that sends the heartbeat of rank 0 every second. In every process it also checks that the
    store is reachable: if not, torchrun is gone, and the process stops as after SIGTERM."""

    def __init__(self, store: Store, rank: int, orphaned: Callable[[], None] | None = None) -> None:
        self._store, self._rank, self._orphaned = store, rank, orphaned or _terminate
        self._ended = threading.Event()
        threading.Thread(target=self._beat, name="dragoman-heartbeat", daemon=True).start()

    def _beat(self) -> None:
        while not self._ended.is_set():
            try:
                self._store.add("heartbeat", 1 if self._rank == 0 else 0)
            except RuntimeError:
                if not self._ended.is_set():
                    self._orphaned()
                return
            self._ended.wait(_BEAT)

    def end(self) -> None:
        self._ended.set()


def _terminate() -> None:
    os.kill(os.getpid(), SIGTERM)


def broadcast(store: Store, number: int, text: str) -> None:
    """On rank 0, publish message `number`."""
    store.set(f"told/{number}", text)


def receive(store: Store, number: int, listeners: int, timeout: Callable[[], float] = lambda: TIMEOUT) -> str:
    """Wait for message `number` of rank 0. Raises ProcessLost if its heartbeat has stopped for longer than
    `timeout()`. The last of the listeners deletes the message."""
    waiting, beats = Polling(TIMEOUT), -1
    while (text := read(store, f"told/{number}")) is None:
        if (now := store.add("heartbeat", 0)) != beats:
            beats = now
            waiting.restart()
        waiting.seconds = timeout()
        if not waiting.wait():
            raise ProcessLost(
                f"process 0 has not given a sign of life for {waiting.seconds:g} s, so all stop"
            )
    if store.add(f"heard/{number}", 1) == listeners:
        store.delete_key(f"told/{number}")
        store.delete_key(f"heard/{number}")
    return text
