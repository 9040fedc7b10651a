"""Text for both directions: every piece is asked for once an epoch, whatever the blocks are."""

from pathlib import Path

import numpy as np
import pytest

from data.test_blocks import STREAM, TEXT, S
from data.text import stored
from dragoman.data.blocks import Blocks
from dragoman.learning.bidirectional import BothWaysText


@pytest.mark.parametrize("length", [4, 7, 100])
def test_every_piece_but_the_last_is_asked_for_once(tmp_path: Path, length: int) -> None:
    examples = BothWaysText(Blocks(stored(tmp_path, [TEXT]), length))
    batch = examples.batch(np.arange(len(examples)), 0)
    assert batch.targets.tolist() == [piece for piece in STREAM[1:-1] if piece != S]
    assert batch.num_tokens == 2 * len(batch.asked)
    assert batch.ids.flatten()[batch.asked].tolist() == batch.targets.tolist()
    width = batch.ids.size(1)
    inside = batch.mask.flatten()
    assert all(0 < place % width < width - 1 and inside[place + 1] for place in batch.asked.tolist())
    assert (examples.src_lengths + 1 == batch.mask.sum(dim=1).numpy()).all()
