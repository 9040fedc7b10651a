"""What updates learn from: the order, the place to go on from, accumulation, the thread that works ahead."""

import dataclasses
import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.data.corpus import Prepared, ShardConfig, prepare
from dragoman.runs.config import RunConfig
from dragoman.training.batches import Batches, UpdateBatch, _in_background
from dragoman.training.distributed import Crew

MakeConfig = Callable[..., RunConfig]
CPU = torch.device("cpu")


def pairs_of(update: UpdateBatch) -> list[list[int]]:
    return [micro.pairs.tolist() for micro in update.micro_batches]


def test_any_place_can_be_gone_on_from(make_config: MakeConfig, prepared: Prepared) -> None:
    batches = Batches(make_config("train.max_epochs=3", "train.accumulate=2"), prepared, CPU)
    whole = list(batches.updates(0, 0))
    assert [update.last for update in whole] == [False] * (len(whole) - 1) + [True]
    for done, update in enumerate(whole, 1):
        rest = batches.updates(update.epoch, update.next_batch)
        assert [pairs_of(u) for u in rest] == [pairs_of(u) for u in whole[done:]]


def test_an_epoch_uses_every_pair_once(make_config: MakeConfig, prepared: Prepared) -> None:
    batches = Batches(make_config("train.max_epochs=2"), prepared, CPU)
    by_epoch: dict[int, list[int]] = {0: [], 1: []}
    for update in batches.updates(0, 0):
        for micro in update.micro_batches:
            by_epoch[micro.epoch] += micro.pairs.tolist()
            for row, number in enumerate(micro.pairs.tolist()):
                src, tgt = prepared.train.src(number), prepared.train.tgt(number)
                assert micro.batch.src_ids[row, : len(src)].tolist() == src.tolist()
                assert micro.batch.tgt_out[row, : len(tgt)].tolist() == tgt.tolist()
    for used in by_epoch.values():
        assert sorted(used) == list(range(len(prepared.train)))
    assert by_epoch[0] != by_epoch[1]


def test_shards_change_no_batch_of_any_process(
    make_config: MakeConfig, prepared: Prepared, tmp_path: Path
) -> None:
    config = make_config("train.max_epochs=2", "train.accumulate=4")
    data = dataclasses.replace(
        config.data, shards=ShardConfig(31, (str(tmp_path / "a"), str(tmp_path / "b")))
    )
    cut = prepare(data, config.tokenizer, seed=config.seed, cache=tmp_path / "cache")
    for rank in range(2):
        crew = Crew()
        crew.rank, crew.size = rank, 2
        whole, parts = (Batches(config, corpus, CPU, crew) for corpus in (prepared, cut))
        updates = list(whole.updates(0, 0))
        assert_same(list(parts.updates(0, 0)), updates)
        last = updates[2]
        assert_same(list(parts.updates(last.epoch, last.next_batch, last.window)), updates[3:])


def test_a_process_without_a_batch_of_its_own_takes_one_that_does_not_count(
    make_config: MakeConfig, prepared: Prepared
) -> None:
    """All processes have as many batches; of every pair one process has it to learn from."""
    config = make_config("train.max_epochs=1", "train.accumulate=3")
    alone = list(Batches(config, prepared, CPU).updates(0, 0))
    shares: list[list[UpdateBatch]] = []
    for rank in range(4):
        crew = Crew()
        crew.rank, crew.size = rank, 4
        shares.append(list(Batches(config, prepared, CPU, crew).updates(0, 0)))
    for whole, *parts in zip(alone, *shares, strict=True):
        assert {len(part.micro_batches) for part in parts} == {1}
        counted = [micro for part in parts for micro in part.micro_batches if micro.counts]
        assert sorted(micro.pairs.tolist() for micro in counted) == sorted(pairs_of(whole))


def assert_same(found: list[UpdateBatch], expected: list[UpdateBatch]) -> None:
    assert [pairs_of(update) for update in found] == [pairs_of(update) for update in expected]
    for update, other in zip(found, expected, strict=True):
        for micro, twin in zip(update.micro_batches, other.micro_batches, strict=True):
            assert torch.equal(micro.batch.src_ids, twin.batch.src_ids)
            assert torch.equal(micro.batch.tgt_out, twin.batch.tgt_out)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_updates_are_counted_ahead(make_config: MakeConfig, prepared: Prepared, accumulate: int) -> None:
    config = make_config("train.max_epochs=1", f"train.accumulate={accumulate}", "train.max_updates=1000")
    batches = Batches(config, prepared, CPU)
    assert batches.count_updates() == len(list(batches.updates(0, 0)))
    assert Batches(make_config("train.max_updates=7"), prepared, CPU).count_updates() == 7


def test_dropout_of_pieces_changes_with_the_epoch_and_is_the_same_twice(
    make_config: MakeConfig, prepared: Prepared
) -> None:
    config = make_config("train.max_epochs=2")
    config = dataclasses.replace(config, tokenizer=dataclasses.replace(config.tokenizer, dropout=0.5))
    runs = []
    for _ in range(2):
        seen = {}
        for update in Batches(config, prepared, CPU).updates(0, 0):
            for micro in update.micro_batches:
                for row, number in enumerate(micro.pairs.tolist()):
                    ids = micro.batch.src_ids[row][micro.batch.src_mask[row]].tolist()
                    seen[micro.epoch, number] = ids
                    text = prepared.src_tokenizer.decode(prepared.train.src(number).tolist())
                    assert prepared.src_tokenizer.decode(ids) == text
        runs.append(seen)
    assert runs[0] == runs[1]
    numbers = range(len(prepared.train))
    assert sum(runs[0][0, n] != runs[0][1, n] for n in numbers) > len(numbers) // 4


def test_the_longest_pair_is_named(make_config: MakeConfig, prepared: Prepared) -> None:
    batches = Batches(make_config(), prepared, CPU)
    micro = next(batches.updates(0, 0)).micro_batches[0]
    lengths = np.maximum(prepared.train.src_lengths, prepared.train.tgt_lengths)[micro.pairs]
    expected = prepared.train.origin(int(micro.pairs[lengths.argmax()]))
    assert batches.origin_of_longest(micro) == expected
    assert ".en:" in expected


# --- the thread --------------------------------------------------------------------------------------


def test_the_thread_keeps_the_order() -> None:
    assert list(_in_background(iter(range(1000)))) == list(range(1000))


def test_an_error_in_the_thread_comes_out_where_it_was_asked_for() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("broken batch")

    items = _in_background(broken())
    assert next(items) == 1
    with pytest.raises(ValueError, match="broken batch"):
        next(items)


def test_leaving_early_ends_the_thread() -> None:
    items = _in_background(itertools.count())
    assert [next(items) for _ in range(3)] == [0, 1, 2]
    items.close()  # type: ignore[attr-defined]
    assert not [t for t in threading.enumerate() if t.name == "dragoman-batches"]
