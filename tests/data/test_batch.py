import random

import numpy as np
import torch

from dragoman.data.batch import collate, pad_sources
from dragoman.decode.search.job import by_length
from dragoman.text.tokenizer import BOS_ID, EOS_ID, PAD_ID


def test_layout_of_a_batch() -> None:
    batch = collate([([5, 6], [7]), ([8], [9, 10, 11])])
    assert batch.src_ids.tolist() == [[5, 6, EOS_ID], [8, EOS_ID, PAD_ID]]
    assert batch.src_mask.tolist() == [[True, True, True], [True, True, False]]
    assert batch.tgt_in.tolist() == [[BOS_ID, 7, PAD_ID, PAD_ID], [BOS_ID, 9, 10, 11]]
    assert batch.tgt_out.tolist() == [[7, EOS_ID, PAD_ID, PAD_ID], [9, 10, 11, EOS_ID]]
    assert batch.tgt_mask.tolist() == [[True, True, False, False], [True] * 4]
    assert batch.num_tokens == 6
    assert batch.src_ids.dtype == torch.int64
    assert batch.src_mask.dtype == torch.bool


def test_collate_against_python_lists() -> None:
    rng = random.Random(0)

    def sentence() -> list[int]:
        return [rng.randrange(3, 60_000) for _ in range(rng.choice((0, 1, 2, 7, 30)))]

    for size in (1, 2, 17):
        pairs = [(sentence(), sentence()) for _ in range(size)]
        # Arrays as they come from a store, unsigned and read-only, give the same as lists.
        arrays = [(np.array(s, dtype=np.uint16), np.array(t, dtype=np.uint32)) for s, t in pairs]
        src_width = max(len(s) for s, _ in pairs) + 1
        tgt_width = max(len(t) for _, t in pairs) + 1
        for batch in (collate(pairs), collate(arrays), collate(pairs, device="cpu")):
            for row, (src, tgt) in enumerate(pairs):
                assert batch.src_ids[row].tolist() == [*src, EOS_ID] + [PAD_ID] * (src_width - len(src) - 1)
                assert batch.tgt_in[row].tolist() == [BOS_ID, *tgt] + [PAD_ID] * (tgt_width - len(tgt) - 1)
                assert batch.tgt_out[row].tolist() == [*tgt, EOS_ID] + [PAD_ID] * (tgt_width - len(tgt) - 1)
                assert batch.src_mask[row].sum() == len(src) + 1
                assert batch.tgt_mask[row].sum() == len(tgt) + 1
            assert batch.num_tokens == int(batch.tgt_mask.sum())


def test_pad_sources_of_nothing_and_of_empty_sentences() -> None:
    ids, mask = pad_sources([])
    assert ids.shape == mask.shape == (0, 1)
    ids, mask = pad_sources([[], [4]])
    assert ids.tolist() == [[EOS_ID, PAD_ID], [4, EOS_ID]]
    assert mask.tolist() == [[True, False], [True, True]]


def test_moving_a_batch_keeps_everything() -> None:
    batch = collate([([5, 6], [7])])
    moved = batch.to("meta")
    assert moved.src_ids.device.type == "meta"
    assert moved.num_tokens == batch.num_tokens
    assert torch.equal(batch.to("cpu").tgt_in, batch.tgt_in)


def test_batches_by_length_hold_everything_once_within_the_budget() -> None:
    lengths = [5, 1, 9, 30, 5, 2, 9, 9]
    batches = list(by_length(lengths, 20))
    assert sorted(number for batch in batches for number in batch) == list(range(8))
    assert batches[0] == [3]  # longer than the budget: alone
    for batch in batches[1:]:
        assert len(batch) * max(lengths[number] for number in batch) <= 20
    flat = [lengths[number] for batch in batches for number in batch]
    assert flat == sorted(flat, reverse=True)
    assert list(by_length([], 20)) == []
