"""A batch of blocks: what is read, what has to be said, and what is not asked for."""

from pathlib import Path

import numpy as np
import pytest

from data.text import stored
from dragoman.data.blocks import Blocks
from dragoman.data.noise import NoiseConfig, Pieces
from dragoman.learning.causal import Stream
from dragoman.learning.masked import MaskedText

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


PIECES = Pieces(mask_id=3, first=4, size=1000)
TEXT = [[[*range(10 * n, 10 * n + 5)] for n in range(1, 60)]]


def masked(tmp_path: Path, **settings) -> MaskedText:
    blocks = Blocks(stored(tmp_path, TEXT), 28)
    return MaskedText(blocks, NoiseConfig(), PIECES, **{"seed": 7, "pairs": True, **settings})


def test_rows_to_be_guessed_are_what_they_say(tmp_path: Path) -> None:
    examples = masked(tmp_path)
    hidden = followed = rows = 0
    for epoch in range(20):
        batch = examples.batch(np.arange(len(examples)), epoch)
        whole = batch.ids.clone()
        whole.view(-1)[batch.asked] = batch.targets
        for row, (ids, mask, segments) in enumerate(zip(whole, batch.mask, batch.segments, strict=True)):
            kept = ids[mask].tolist()
            first, second = kept.index(E), len(kept) - 1
            assert (kept[0], kept[second], len(kept)) == (S, E, first + 1 + int(segments.sum()))
            assert segments[mask].tolist() == [0] * (first + 1) + [1] * (second - first)
            text = np.concatenate(examples.blocks.sentences(row)).tolist()
            assert kept[1:first] == text[: first - 1]
            assert (kept[first + 1 : second] == text[first - 1 :]) == bool(batch.follows[row])
            assert second - 2 == len(text)  # a stranger is as long as what it stands for
        asked = batch.ids.view(-1)[batch.asked]
        assert not ((batch.targets == S) | (batch.targets == E)).any()
        hidden += int((asked == 3).sum()) / len(asked)
        followed += int(batch.follows.sum())
        rows += len(batch.ids)
    assert hidden / 20 == pytest.approx(0.8, abs=0.04)
    assert followed / rows == pytest.approx(0.5, abs=0.1)


def test_rows_are_a_function_of_seed_epoch_and_number(tmp_path: Path) -> None:
    examples = masked(tmp_path)
    both, alone = examples.batch(np.array([4, 2]), 3), examples.batch(np.array([2]), 3)
    width = alone.ids.size(1)
    assert both.ids[1, :width].tolist() == alone.ids[0].tolist()
    assert (both.asked[both.asked >= both.ids.size(1)] - both.ids.size(1)).tolist() == alone.asked.tolist()
    assert examples.batch(np.array([2]), 4).ids.tolist() != alone.ids.tolist()
    one = MaskedText(examples.blocks, NoiseConfig(), PIECES, seed=7, pairs=False).batch(np.array([2]), 3)
    assert one.follows is None
    assert not one.segments.any()
