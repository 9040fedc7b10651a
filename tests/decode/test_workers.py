"""Batches side by side: all of them, threads as they were, errors told."""

import threading

import pytest
import torch

from dragoman.decode.translator.translator import share_of, side_by_side, workers_for
from dragoman.nn.attention_kernels import open_tap


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield 4
    torch.set_num_threads(before)


def test_every_item_comes_once_and_the_cores_are_divided(threads: int) -> None:
    meeting = threading.Barrier(2, timeout=600)  # only a guard

    def work(item: int) -> tuple[int, int]:
        if item < 2:
            meeting.wait()  # only two at once get past it
        return item * item, torch.get_num_threads()

    found = dict(side_by_side(work, range(7), 2))
    assert found == {item: (item * item, threads // 2) for item in range(7)}
    assert torch.get_num_threads() == threads
    seen: list[int] = []
    later = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert seen == [threads]


def test_an_error_comes_through(threads: int) -> None:
    def work(item: int) -> float:
        return 1 / item

    with pytest.raises(ZeroDivisionError):
        dict(side_by_side(work, [1, 0, 2], 2))
    assert torch.get_num_threads() == threads


def test_how_many(threads: int) -> None:
    cpu = torch.device("cpu")
    assert [workers_for(cpu, tokens) for tokens in (0, 1000, 1024, 2048, 100_000)] == [1, 1, 2, 4, threads]
    assert workers_for(torch.device("meta"), 100_000) == 1
    with open_tap(lambda *_: None):
        assert workers_for(cpu, 100_000) == 1
    with torch.autocast("cpu"):
        assert workers_for(cpu, 100_000) == 1
    assert share_of(2048, 100_000, 4) == 2048
    assert share_of(2048, 4000, 2) == 1000
    assert share_of(2048, 1100, 2) == 512
    assert share_of(2048, 1100, 1) == 2048
