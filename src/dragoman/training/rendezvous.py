"""How the processes of a run find each other, and hear of rank 0: by keys in a store that all of them reach.

    rank 1   hello/1 = b7 ──▶ rank 0   welcome/1 = b7 c4 ──▶ rank 1   here/1 = b7 c4 ──▶ rank 0   all/c4

torchrun keeps its store when it starts processes again, with all that the dead have written into it. So every
process takes a name that none has had before, and believes only what is said to that name. The name of rank 0
(c4) is that of the attempt.

Nobody waits in silence: rank 0 has a pulse, and those who wait for it do so as long as it beats, be it for
hours. Waiting is counted in naps, not by the clock: a machine that sleeps has not been waiting.
"""

import os
import threading
import time
import uuid
from collections.abc import Callable
from signal import SIGTERM
from typing import Protocol

PATIENCE = 60.0
"""Seconds without a sign of life after which a process counts as lost."""
HURRIED = 6.0
"""The same once a process has been told to stop. That may mean that rank 0 has been killed: torchrun tells
the others, and kills them too if they wait for long."""
_BEAT = 1.0
_SHORTEST_NAP, _LONGEST_NAP = 0.0005, 0.05


class Lost(RuntimeError):
    """Another process does not answer."""


class Store(Protocol):
    """What is used of a store of torch.distributed."""

    def set(self, key: str, value: str, /) -> object: ...
    def get(self, key: str, /) -> bytes: ...
    def check(self, keys: list[str], /) -> bool: ...
    def add(self, key: str, amount: int, /) -> int: ...
    def delete_key(self, key: str, /) -> bool: ...
    def compare_set(self, key: str, expected: str, desired: str, /) -> bytes: ...


def read(store: Store, key: str) -> str | None:
    """What is there now, without waiting for it."""
    return store.get(key).decode() if store.check([key]) else None


class Patience:
    """Naps between looks, longer from look to look, until they are `seconds` in all."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self._spent, self._nap = seconds, 0.0, _SHORTEST_NAP

    def begin_anew(self) -> None:
        self._spent = 0.0

    def nap(self) -> bool:
        """False where the time is over."""
        time.sleep(self._nap)
        self._spent += self._nap
        self._nap = min(2 * self._nap, _LONGEST_NAP)
        return self._spent < self.seconds


def meet(store: Store, rank: int, size: int, patience: float = PATIENCE) -> str:
    """Wait until all processes of this attempt are there. Returns its name, which only they know."""
    own, waiting = uuid.uuid4().hex, Patience(patience)
    if rank == 0:
        missing = _welcome(store, own, size, waiting)
        if missing:
            raise Lost(
                f"of {size} processes {_listed(missing)} did not come within {patience:g} s, so all stop"
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
        if not waiting.nap():
            raise Lost(f"process {rank} of {size} was not called within {patience:g} s, so it stops")


def _welcome(store: Store, own: str, size: int, waiting: Patience) -> list[int]:
    """As rank 0, greet everybody until all have answered; those who have not when the time is over. The dead
    of another attempt may be greeted too: they never answer, and the living take their place."""
    answers: dict[int, str] = {}
    missing = list(range(1, size))
    while missing:
        for rank in missing:
            name = read(store, f"hello/{rank}")
            if name is not None and answers.get(rank) != f"{name} {own}":
                answers[rank] = f"{name} {own}"
                store.set(f"welcome/{rank}", answers[rank])
        missing = [r for r in missing if r not in answers or read(store, f"here/{r}") != answers[r]]
        if missing and not waiting.nap():
            break
    return missing


def _listed(ranks: list[int]) -> str:
    shown = ", ".join(map(str, ranks[:8]))
    return f"{shown} and {len(ranks) - 8} more" if len(ranks) > 8 else shown


class Pulse:
    """A thread that says every second that rank 0 lives, and in every process looks whether the store
    does: where it is gone, so is torchrun, and the process is asked to stop as by SIGTERM."""

    def __init__(self, store: Store, rank: int, orphaned: Callable[[], None] | None = None) -> None:
        self._store, self._rank, self._orphaned = store, rank, orphaned or _terminate
        self._ended = threading.Event()
        threading.Thread(target=self._beat, name="dragoman-pulse", daemon=True).start()

    def _beat(self) -> None:
        while not self._ended.is_set():
            try:
                self._store.add("pulse", 1 if self._rank == 0 else 0)
            except RuntimeError:
                if not self._ended.is_set():
                    self._orphaned()
                return
            self._ended.wait(_BEAT)

    def end(self) -> None:
        self._ended.set()


def _terminate() -> None:
    os.kill(os.getpid(), SIGTERM)


def tell(store: Store, number: int, text: str) -> None:
    """As rank 0, say something to all others."""
    store.set(f"told/{number}", text)


def hear(store: Store, number: int, listeners: int, patience: Callable[[], float] = lambda: PATIENCE) -> str:
    """What rank 0 says, as soon as it does; Lost where its pulse has stopped for longer than the `patience`
    of the moment. The last who hears it takes it out of the store."""
    waiting, beats = Patience(PATIENCE), -1
    while (text := read(store, f"told/{number}")) is None:
        if (now := store.add("pulse", 0)) != beats:
            beats = now
            waiting.begin_anew()
        waiting.seconds = patience()
        if not waiting.nap():
            raise Lost(f"process 0 has not given a sign of life for {waiting.seconds:g} s, so all stop")
    if store.add(f"heard/{number}", 1) == listeners:
        store.delete_key(f"told/{number}")
        store.delete_key(f"heard/{number}")
    return text
