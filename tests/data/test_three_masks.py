"""Text that is read in three ways, and text whose beginning is given: by hand, and by its statistics."""

from pathlib import Path

import numpy as np
import pytest

from data.test_blocks import STREAM, TEXT, E, S
from data.text import stored
from dragoman.data.blocks import Blocks
from dragoman.data.noise import NoiseConfig, Pieces
from dragoman.data.seeded_random import Dice
from dragoman.learning.prefix import PrefixedText, cut_of
from dragoman.learning.unilm import SegmentedText

PAD = 0


@pytest.fixture
def long(tmp_path: Path) -> Blocks:
    chance = np.random.default_rng(1)
    lines = [chance.integers(10, 60, chance.integers(1, 12)).tolist() for _ in range(3000)]
    return Blocks(stored(tmp_path, [lines]), 32)


def test_a_block_is_cut_where_a_line_begins() -> None:
    ids = np.array([9, E, S, 5, 6, E, S, 7, E])
    cuts = [cut_of(ids, Dice(1, 2, number)) for number in range(200)]
    assert set(cuts) == {2, 6}
    anywhere = [cut_of(np.array([9, 5, 6, 7]), Dice(1, 2, number)) for number in range(200)]
    assert set(anywhere) == {1, 2}


def test_prefixes_by_hand(tmp_path: Path) -> None:
    examples = PrefixedText(Blocks(stored(tmp_path, [TEXT]), 8), seed=3)
    numbers = np.arange(len(examples))
    batch = examples.batch(numbers, 1)
    for row, begin in enumerate((0, 8, 16)):
        whole = STREAM[begin : begin + 10]
        source = batch.src_ids[row][batch.src_mask[row]].tolist()
        cut = len(source)
        assert source == whole[:cut]
        width = len(whole) - cut - 1
        assert batch.tgt_in[row].tolist() == whole[cut:-1] + [PAD] * (batch.shape[1] - width)
        said = [piece if piece != S else PAD for piece in whole[cut + 1 :]]
        assert batch.tgt_out[row].tolist() == said + [PAD] * (batch.shape[1] - width)
        assert (examples.src_lengths + 1)[row] >= cut
        assert (examples.tgt_lengths + 1)[row] >= width
    assert batch.num_tokens == int(batch.tgt_mask.sum())
    again = [examples.batch(numbers, epoch).src_ids.tolist() for epoch in (1, 1, 2)]
    assert again[0] == again[1] != again[2]


def test_three_ways_by_their_statistics(long: Blocks) -> None:
    pieces = Pieces(PAD, first=10, size=60)
    examples = SegmentedText(long, NoiseConfig(), pieces, seed=1, shares=(2, 1, 1))
    numbers = np.arange(len(examples) - 1)
    batch = examples.batch(numbers, 0)
    first = batch.segments[:, 0]
    shares = [(first == way).float().mean().item() for way in range(3)]
    assert shares == pytest.approx([0.5, 0.25, 0.25], abs=0.05)
    for row in batch.segments[first == 2][:50].tolist():
        assert sorted(row) == row
        assert set(row) == {2, 3}
    whole = np.stack([long[number] for number in numbers])
    read, asked = batch.ids.numpy().ravel(), batch.asked.numpy()
    assert (batch.targets.numpy() == whole.ravel()[asked]).all()
    assert S not in batch.targets
    assert E in batch.targets
    assert (read == whole.ravel())[np.setdiff1d(np.arange(read.size), asked)].all()
    blank, same = (read[asked] == PAD).mean(), (read[asked] == whole.ravel()[asked]).mean()
    assert blank == pytest.approx(0.8, abs=0.03)
    assert same == pytest.approx(0.1 + 0.1 / 50, abs=0.02)
    assert len(asked) / (whole[:, 2:] != S).sum() == pytest.approx(0.15, abs=0.015)  # whole pieces a block
    assert (asked % whole.shape[1] > 1).all()  # the first two belong to the block before


def test_whole_words_end_with_their_line(long: Blocks) -> None:
    starts = np.zeros(60, dtype=bool)
    starts[10::2] = True
    pieces = Pieces(PAD, first=10, size=60, word_starts=starts)
    batch = SegmentedText(long, NoiseConfig(share=0.3), pieces, 1, (1, 0, 0)).batch(np.arange(40), 0)
    width = batch.ids.size(1)
    asked = set(batch.asked.tolist())
    for number in range(40):
        row = long[number]
        for place in range(2, len(row) - 1):
            if (
                row[place] not in (S, E)
                and not starts[row[place]]
                and row[place - 1] not in (S, E)
                and place > 2
            ):
                assert (number * width + place in asked) == (number * width + place - 1 in asked)
