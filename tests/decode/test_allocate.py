"""The best piece of a large vocabulary against a plain search."""

import pytest
import torch

from dragoman.decode.search.beam_allocation import best_piece


@pytest.mark.parametrize("size", [5, 256, 300, 1000, 1024])
def test_the_best_piece_is_the_first_of_equals(size: int) -> None:
    generator = torch.Generator().manual_seed(size)
    few = torch.randint(0, 4, (40, size), generator=generator).float()  # ties everywhere
    many = torch.randn(40, size, generator=generator)
    many[:, 1] = -torch.inf
    many[3] = -torch.inf
    many[4, -1] = 9.0
    for scores in (few, many):
        expected = [row.index(max(row)) for row in scores.tolist()]
        assert best_piece(scores).tolist() == expected
