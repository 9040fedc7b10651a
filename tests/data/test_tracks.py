"""Text in its order: every block once, and every row goes on where it was."""

from itertools import pairwise

import pytest

from dragoman.data.sampler import TrackSampler
from dragoman.errors import UserError


@pytest.mark.parametrize(("blocks", "rows"), [(10, 3), (10, 10), (7, 1), (5, 9), (12, 5)])
def test_every_block_is_read_once_and_rows_go_on(blocks: int, rows: int) -> None:
    sampler = TrackSampler(blocks, rows)
    batches = [batch.tolist() for batch in sampler.batches(0)]
    assert sorted(number for batch in batches for number in batch) == list(range(blocks))
    assert len(batches) == sampler.num_batches(0)
    assert len(batches[0]) <= rows
    for before, after in pairwise(batches):
        assert after == [number + 1 for number in before][: len(after)]


def test_an_epoch_goes_on_from_any_batch() -> None:
    sampler = TrackSampler(10, 3)
    assert [b.tolist() for b in sampler.batches(4, 2)] == [[2, 6], [3, 7]]


def test_nothing_cannot_be_read() -> None:
    with pytest.raises(UserError, match="there is no text to read"):
        TrackSampler(0, 3)
