"""Text as blocks: by hand, and every piece exactly once whatever the length of a block."""

from pathlib import Path

import numpy as np
import pytest

from data.text import stored
from dragoman.data.blocks import Blocks

S, E = 1, 2
TEXT = [[5, 6, 7], [8], [], [], [9, 10], [11, 12, 13, 14, 15]]
STREAM = [E, S, 5, 6, 7, E, S, 8, E, S, E, S, 9, 10, E, S, 11, 12, 13, 14, 15, E]


def test_blocks_by_hand(tmp_path: Path) -> None:
    blocks = Blocks(stored(tmp_path, [TEXT]), 8)
    assert [blocks[i].tolist() for i in range(len(blocks))] == [STREAM[:10], STREAM[8:18], STREAM[16:]]
    assert blocks.lengths.tolist() == [8, 8, 4]
    assert [blocks.origin(i) for i in range(3)] == ["0.txt:1", "0.txt:5", "0.txt:6"]


@pytest.mark.parametrize("length", [2, 3, 5, 7, 20, 21, 100])
def test_every_piece_is_said_once_after_the_one_before_it(tmp_path: Path, length: int) -> None:
    blocks = Blocks(stored(tmp_path, [TEXT]), length)
    said = [piece for i in range(len(blocks)) for piece in blocks[i][2:].tolist()]
    assert said == STREAM[2:]
    assert blocks.lengths.sum() == len(STREAM) - 2
    for i in range(len(blocks)):
        assert blocks[i].tolist()[:2] == STREAM[i * length : i * length + 2]


def test_corpora_are_streams_of_their_own(tmp_path: Path) -> None:
    blocks = Blocks(stored(tmp_path, [TEXT, [], [[20], [21, 22]]]), 8)
    assert [(c.start, c.end) for c in blocks.corpora] == [(0, 3), (3, 3), (3, 4)]
    assert blocks[3].tolist() == [E, S, 20, E, S, 21, 22, E]
    assert blocks.origin(3) == "2.txt:1"
    with pytest.raises(IndexError, match="block 4 of 4"):
        blocks[4]


def test_the_lines_of_a_block_without_marks(tmp_path: Path) -> None:
    blocks = Blocks(stored(tmp_path, [TEXT]), 8)
    found = [[line.tolist() for line in blocks.sentences(i)] for i in range(3)]
    assert found == [[[5, 6, 7], [8]], [[9, 10], [11, 12]], [[13, 14, 15]]]


def test_many_lines_at_random(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [rng.integers(3, 100, rng.integers(0, 9)).tolist() for _ in range(300)]
    while not lines[-1]:
        lines.pop()
    stream, gap = [E], False
    for line in lines:
        if line:
            stream += ([S, E] if gap and len(stream) > 1 else []) + [S, *line, E]
        gap = not line
    blocks = Blocks(stored(tmp_path, [lines]), 16)
    assert [piece for i in range(len(blocks)) for piece in blocks[i][2:].tolist()] == stream[2:]
