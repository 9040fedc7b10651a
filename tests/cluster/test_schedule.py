"""Chunks over workers that end, fail and come late: every line once, in its order, whatever happens."""

import random
from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest

from dragoman.cluster.schedule import Failed, Gone, Made, Ready, Refused, Reply, Schedule
from dragoman.errors import UserError

LINES = [f"line {number}" for number in range(1, 60)]


class Hands:
    """Workers of a test: they answer in an order that a seed decides, and fail where they are told to."""

    def __init__(self, count: int, seed: int = 0, poison: dict[str, str] | None = None) -> None:
        self.count, self.random, self.poison = count, random.Random(seed), poison or {}
        self.started = 0
        self.asked: dict[int, list[str] | None] = {}
        self.done: list[list[str | None]] = []
        self.losses = 0
        self.alive: set[int] = set()

    def wanted(self) -> int:
        return self.count

    def start(self) -> int:
        self.started += 1
        self.asked[self.started] = None
        self.alive.add(self.started)
        return self.started

    def send(self, worker: int, items: Sequence[Any]) -> None:
        assert worker in self.alive and worker not in self.asked
        self.asked[worker] = list(items)

    def stop(self, worker: int) -> None:
        self.alive.remove(worker)

    def replies(self) -> list[tuple[int, Reply]]:
        if not self.asked:
            return []
        worker = self.random.choice(sorted(self.asked))
        items = self.asked.pop(worker)
        if items is None:
            return [(worker, Ready())]
        if self.losses:
            self.losses -= 1
            self.alive.remove(worker)
            return [(worker, Gone("its machine has gone", lost=True))]
        for line in items:
            match self.poison.get(line):
                case "end":
                    self.alive.remove(worker)
                    return [(worker, Gone("ended by signal 11"))]
                case "fail" | "break" as how:
                    return [(worker, Failed("IndexError: 7", broken=how == "break"))]
                case "refuse":
                    return [(worker, Refused("no such run"))]
        self.done.append([*items])
        return [(worker, Made([None if line is None else line.upper() for line in items]))]


def chunks(size: int = 7) -> list[list[str]]:
    return [LINES[first : first + size] for first in range(0, len(LINES), size)]


def gathered(hands: Hands, told: list[str] | None = None) -> list[str | None]:
    told = [] if told is None else told
    return [line for part in Schedule(hands, chunks(), 100, told.append).results() for line in part]


@pytest.mark.parametrize("count", [1, 2, 5, 40])
@pytest.mark.parametrize("seed", range(4))
def test_order_in_is_order_out(count: int, seed: int) -> None:
    hands = Hands(count, seed)
    assert gathered(hands) == [line.upper() for line in LINES]
    assert sorted(hands.done) == sorted(chunks()), "nothing twice"


@pytest.mark.parametrize("seed", range(6))
def test_a_lost_machine_costs_no_line_and_is_nobodys_fault(seed: int) -> None:
    hands, told = Hands(3, seed), []
    hands.losses = 12
    assert gathered(hands, told) == [line.upper() for line in LINES]
    assert sorted(hands.done) == sorted(chunks()) and not told


@pytest.mark.parametrize("how", ["end", "fail", "break"])
@pytest.mark.parametrize("seed", range(3))
def test_a_poisonous_line_costs_itself(how: str, seed: int) -> None:
    bad = {LINES[9]: how, LINES[10]: how, LINES[58]: how}
    hands, told = Hands(3, seed, bad), []
    assert gathered(hands, told) == [None if line in bad else line.upper() for line in LINES]
    assert sorted(int(line.split()[1]) for line in told) == [110, 111, 159]
    assert all(line.endswith(("signal 11", "IndexError: 7")) for line in told)
    wholes = [part for part in hands.done if len(part) == 7 or part[-1] is None]
    assert [None if line in bad else line for line in LINES[7:14]] in wholes, "the rest is done together"


def test_at_most_two_chunks_a_worker_are_read_ahead() -> None:
    read = deque[int]()

    def source():  # type: ignore[no-untyped-def]
        for number in range(1000):
            read.append(number)
            yield [str(number)]

    for number, _ in enumerate(Schedule(Hands(4), source(), 0, print).results()):
        assert len(read) - number <= 9


def test_workers_go_on_while_a_result_is_written() -> None:
    hands = Hands(1)
    for number, _ in enumerate(Schedule(hands, chunks(), 0, print).results(), 1):
        assert list(hands.asked.values()) == chunks()[number : number + 1]


def test_what_is_nobodys_line_ends_the_work() -> None:
    with pytest.raises(UserError, match="no such run"):
        gathered(Hands(2, poison={LINES[3]: "refuse"}))
    with pytest.raises(UserError, match="every machine fails, at line"):
        every = dict.fromkeys(LINES, "fail")
        list(Schedule(Hands(2, poison=every), [LINES], 0, [].append).results())


def test_a_chunk_that_fails_only_as_a_whole() -> None:
    class Crowded(Hands):
        def replies(self) -> list[tuple[int, Reply]]:
            asked = [items for items in self.asked.values() if items]
            found = super().replies()
            if any(isinstance(reply, Made) and len(reply.value) == 7 for _, reply in found) and asked:
                return [(found[0][0], Failed("out of memory"))]
            return found

    with pytest.raises(UserError, match="lines 101 to 107 fail together, and none of them alone: out of m"):
        gathered(Crowded(1))


def test_no_machine_has_room() -> None:
    with pytest.raises(UserError, match="no machine of the cluster has room"):
        gathered(Hands(0))


class Stillborn(Hands):
    """All workers but the first `sound` end before they are ready, twenty for each reply of these."""

    sound = 0
    turn = 0

    def replies(self) -> list[tuple[int, Reply]]:
        unsound = {worker: self.asked.pop(worker) for worker in {*self.asked} if worker > self.sound}
        self.turn += 1
        if unsound and (self.turn % 21 != 1 or not self.asked):
            ended, _ = unsound.popitem()
            self.asked |= unsound
            return [(ended, Gone("no libgomp", lost=True))]  # Ray cannot say where it was
        found = super().replies()
        self.asked |= unsound
        return found


def test_workers_that_never_start() -> None:
    with pytest.raises(UserError, match="end before they can do anything: no libgomp"):
        gathered(Stillborn(2))


def test_a_machine_on_which_nothing_starts_does_not_end_the_work() -> None:
    hands = Stillborn(2)
    hands.sound = 1
    assert gathered(hands) == [line.upper() for line in LINES]
    assert hands.started > 40
