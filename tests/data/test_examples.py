"""A batch of blocks: what is read, what has to be said, and what is not asked for."""

from pathlib import Path

import numpy as np

from data.text import stored
from dragoman.data.blocks import Blocks
from dragoman.data.examples import Stream

S, E, P = 1, 2, 0


def test_a_batch_of_a_stream_by_hand(tmp_path: Path) -> None:
    stream = Stream(Blocks(stored(tmp_path, [[[5, 6, 7], [8], [9, 10, 11, 12]]]), 6))
    batch = stream.batch(np.array([1, 0]), epoch=3)
    assert batch.src_ids.tolist() == [[S], [E]]
    assert batch.src_mask.all()
    assert batch.tgt_in.tolist() == [[8, E, S, 9, 10, 11], [S, 5, 6, 7, E, S]]
    assert batch.tgt_out.tolist() == [[E, P, 9, 10, 11, 12], [5, 6, 7, E, P, 8]]
    assert batch.tgt_mask.tolist() == [[c != P for c in row] for row in batch.tgt_out.tolist()]
    assert batch.num_tokens == 10
    assert stream.tgt_lengths.tolist() == [5, 5, 0]
    last = stream.batch(np.array([2, 0]), epoch=0)
    assert last.tgt_out.tolist() == [[E, P, P, P, P, P], [5, 6, 7, E, P, 8]]
    assert last.tgt_in[0].tolist() == [12, E, P, P, P, P]  # what follows the end says nothing
