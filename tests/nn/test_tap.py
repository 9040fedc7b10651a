"""Taps belong to the thread that opened them."""

from concurrent.futures import ThreadPoolExecutor

import torch

from dragoman.nn.attention import attend
from dragoman.nn.attention_kernels import open_tap, tap_is_open


def test_a_tap_sees_nothing_of_another_thread() -> None:
    owner, x = torch.nn.Identity(), torch.ones(1, 1, 2, 4)
    seen: list[torch.Tensor] = []

    def attend_elsewhere() -> bool:
        attend(owner, x, x, x)
        return tap_is_open()

    with open_tap(lambda _owner, weights: seen.append(weights)), ThreadPoolExecutor(1) as pool:
        assert not pool.submit(attend_elsewhere).result()
        assert not seen
        attend(owner, x, x, x)
        assert tap_is_open() and len(seen) == 1
    assert not tap_is_open()
