"""The recurrent layer of a head reads both ways."""

import torch

from dragoman.models.task_heads import Head, HeadConfig


def test_a_recurrent_head_sees_what_comes_after() -> None:
    torch.manual_seed(0)
    head = Head(HeadConfig("tag", num_labels=3, dropout=0.0, recurrent=6), [4, 4]).eval()
    mask = torch.ones(1, 3, dtype=torch.bool)
    one = torch.randn(1, 3, 4)
    other = one.clone()
    other[:, 2] += 1.0
    first, second = (head.listen([x, x], mask) for x in (one, other))
    assert first.shape == (1, 3, 6)
    assert not torch.allclose(first[:, 0], second[:, 0])
