"""Processes that find each other in a store which is full of what others have left there."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch.distributed as dist

from dragoman.errors import UserError
from dragoman.runs.opening import pick_device
from dragoman.training.distributed import refuse_shared_card
from dragoman.training.rendezvous import Heartbeat, Polling, ProcessLost, Store, broadcast, meet, receive


@pytest.fixture
def store() -> Store:
    return dist.HashStore()  # pyright: ignore[reportPrivateImportUsage]


def met(store: Store, size: int) -> set[str]:
    with ThreadPoolExecutor(size) as pool:
        return set(pool.map(lambda rank: meet(store, rank, size), range(size)))


def test_all_come_to_know_one_name_each_time_another(store: Store) -> None:
    names = [met(store, 3) for _ in range(3)]  # the second and third find the keys of those before
    assert [len(found) for found in names] == [1, 1, 1]
    assert len(set.union(*names)) == 3


def test_the_dead_are_greeted_but_not_waited_for(store: Store) -> None:
    """Of an attempt before, rank 1 has come and died, and rank 2 was killed after it had answered."""
    store.set("hello/1", "dead")
    store.set("hello/2", "dead")
    store.set("welcome/2", "dead gone")
    store.set("here/2", "dead gone")
    store.set("all/gone", "")
    assert len(met(store, 3)) == 1


def test_who_does_not_come_is_named(store: Store) -> None:
    with pytest.raises(ProcessLost, match=r"of 4 processes 1, 2, 3 did not come within 0\.01 s"):
        meet(store, 0, 4, 0.01)
    with pytest.raises(ProcessLost, match="process 2 of 4 was not called"):
        meet(store, 2, 4, 0.01)
    with pytest.raises(ProcessLost, match=r"1, 2, 3, 4, 5, 6, 7, 8 and 91 more"):
        meet(store, 0, 100, 0.01)


class Beating:
    """A store in which rank 0 lives for so many looks, and speaks after `speaks`."""

    def __init__(self, lives: int, speaks: int) -> None:
        self.looks, self.lives, self.speaks = 0, lives, speaks
        self.deleted: list[str] = []

    def check(self, keys: list[str]) -> bool:
        assert keys == ["told/3"]
        return self.looks >= self.speaks

    def get(self, key: str) -> bytes:
        return f"{key} at last".encode()

    def set(self, key: str, value: str) -> None: ...

    def add(self, key: str, amount: int) -> int:  # noqa: ARG002
        if key == "heard/3":
            return 2
        self.looks += 1
        return min(self.looks, self.lives)

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        raise NotImplementedError

    def delete_key(self, key: str) -> bool:
        self.deleted.append(key)
        return True


def test_who_waits_for_rank_0_waits_as_long_as_it_lives() -> None:
    store = Beating(lives=40, speaks=40)
    assert receive(store, 3, 2, lambda: 0.06) == "told/3 at last"  # some 1.8 s, thirty times as long
    assert store.deleted == ["told/3", "heard/3"]
    with pytest.raises(ProcessLost, match=r"process 0 has not given a sign of life for 0\.06 s"):
        receive(Beating(lives=3, speaks=1000), 3, 2, lambda: 0.06)
    told = iter([60.0] * 5)
    with pytest.raises(ProcessLost, match=r"process 0 has not given a sign of life for 0\.06 s"):
        receive(Beating(lives=3, speaks=1000), 3, 2, lambda: next(told, 0.06))  # told to stop while it waited


def test_what_is_told_is_heard_by_all_and_then_forgotten(store: Store) -> None:
    broadcast(store, 1, "first")
    broadcast(store, 2, "second")
    for _ in range(2):
        assert [receive(store, number, listeners=2) for number in (1, 2)] == ["first", "second"]
    assert not any(store.check([f"{kind}/{number}"]) for kind in ("told", "heard") for number in (1, 2))


def test_patience_is_counted_in_naps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped for an hour has not waited for an hour."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    waiting = Polling(1.0)
    naps = sum(1 for _ in iter(waiting.wait, False))
    assert 20 <= naps <= 40


def test_a_store_that_is_gone_is_told() -> None:
    class Gone(Beating):
        def add(self, key: str, amount: int) -> int:  # noqa: ARG002
            raise RuntimeError("connection reset by peer")

    told = threading.Event()
    pulse = Heartbeat(Gone(0, 0), 1, told.set)
    assert told.wait(600)  # only a guard
    pulse.end()


def test_two_processes_on_one_card_are_told_so(store: Store) -> None:
    refuse_shared_card(store, "host GPU-1", 0)
    refuse_shared_card(store, "host GPU-2", 1)
    with pytest.raises(UserError, match=r"^train\.device: processes 0 and 2 are on the same GPU; start one"):
        refuse_shared_card(store, "host GPU-1", 2)


def test_more_processes_than_cards_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    with pytest.raises(UserError, match=r"process 2 .* has no GPU, there are 2; .*--nproc-per-node 2"):
        pick_device("cuda", 2)
