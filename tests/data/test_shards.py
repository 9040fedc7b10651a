"""A store in shards holds what a whole one holds, pair for pair and batch for batch, wherever they lie."""

import gc
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.conftest import MakePairs, WriteCorpus
from data.damage import reseal
from dragoman.data.blocks import Blocks
from dragoman.data.corpus import DataConfig, Prepared, ShardConfig, SourceConfig, prepare
from dragoman.data.sampler import BucketSampler, tempered
from dragoman.errors import UserError
from dragoman.text.tokenizer import TokenizerConfig

CHARS = TokenizerConfig(kind="char", vocab_size=400)
Prepare = Callable[..., Prepared]


@pytest.fixture
def prepare_in(tmp_path: Path, write_corpus: WriteCorpus, make_pairs: MakePairs) -> Prepare:
    """prepare_in(name, shard options): always the same two corpora, 251 pairs, in caches of their own."""
    sources = [write_corpus(make_pairs(211)), write_corpus(make_pairs(40, seed=1), "b", weight=2.0)]
    links = tmp_path / "a.links"
    links.write_text("\n" * 3 + "0-0\n" + "\n" * 207)
    sources[0] = replace(sources[0], alignment=str(links))

    def make(name: str, pairs: int | None = None, *directories: Path) -> Prepared:
        shards = ShardConfig(pairs, tuple(map(str, directories)))
        data = DataConfig(tuple(sources), valid_size=5, shards=shards)
        return prepare(data, CHARS, seed=1, cache=tmp_path / name)

    return make


def contents(prepared: Prepared) -> list[tuple[list[int], ...]]:
    store = prepared.train
    return [
        (store.src(n).tolist(), store.tgt(n).tolist(), store.links(n).tolist(), [store.tgt_begin(n)])
        for n in range(len(store))
    ]


def batches(prepared: Prepared, epoch: int, start: int = 0) -> list[list[int]]:
    store = prepared.train
    corpora = tempered(store.corpora, 2.0)
    sampler = BucketSampler(
        store.src_lengths, store.tgt_lengths, batch_tokens=300, seed=5, corpora=corpora, window=64
    )
    return [batch.tolist() for batch in sampler.batches(epoch, start)]


def test_one_shard_and_five_give_the_same_batches(prepare_in: Prepare, tmp_path: Path) -> None:
    whole = prepare_in("whole")
    size = -(-len(whole.train) // 5)
    cut, single = prepare_in("cut", size), prepare_in("single", 10**9)
    apart = prepare_in("apart", size, tmp_path / "disk1", tmp_path / "disk2")
    assert whole.fingerprint == cut.fingerprint == apart.fingerprint
    assert len(list(cut.directory.glob("train-*.src.ids"))) == 5
    for other in (cut, single, apart):
        assert other.train.opened == 0  # planning batches opens none
        assert [batches(other, epoch) for epoch in (0, 1)] == [batches(whole, epoch) for epoch in (0, 1)]
        assert batches(other, 1, 7) == batches(whole, 1)[7:]
        assert other.train.opened == 0
        other.train.src(0)
        assert other.train.opened == 1
        assert contents(other) == contents(whole)
        assert [other.train.origin(n) for n in (0, len(whole.train) - 1)] == [
            whole.train.origin(n) for n in (0, len(whole.train) - 1)
        ]
        total = len(whole.train)
        assert other.train.tgt_begin(total) == whole.train.tgt_begin(total) == whole.train.tgt_lengths.sum()
        with pytest.raises(IndexError):
            other.train.src(total)


def test_a_store_that_is_gone_holds_no_files(prepare_in: Prepare) -> None:
    """Without any help of the collector of cycles."""

    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    directory = prepare_in("cut", 20).directory
    gc.collect()
    before = open_files()
    gc.disable()
    try:
        prepared = Prepared.open(directory)
        held = open_files() - before
        prepared.train.check()
        assert open_files() - before == held  # shards are closed after they were checked
        prepared.train.src(0)
        assert open_files() - before > held
        del prepared
        assert open_files() == before
    finally:
        gc.enable()


def test_shards_lie_in_their_directories_in_turn(prepare_in: Prepare, tmp_path: Path) -> None:
    disks = [tmp_path / "disk1", tmp_path / "disk2"]
    prepared = prepare_in("cache", 60, disks[0], disks[1], disks[1])  # the second has twice the room
    places = [
        (prepared.directory / f"train-{number:05d}.tgt.ids").resolve().parent.parent for number in range(4)
    ]
    assert places == [disks[0], disks[1], disks[1], disks[0]]
    assert [len(list(disk.iterdir())) for disk in disks] == [1, 1]  # nothing unfinished is left
    assert prepare_in("cache").directory == prepared.directory  # how it is cut is no reason to make it again
    run = prepared.link_into(tmp_path / "run" / "data")
    shutil.rmtree(tmp_path / "cache")
    assert contents(run) == contents(prepare_in("other"))


def test_a_lost_shard_is_named_and_made_again_in_its_place(prepare_in: Prepare, tmp_path: Path) -> None:
    prepared = prepare_in("cache", 60, tmp_path / "disk")
    run = prepared.link_into(tmp_path / "run" / "data")
    expected = contents(prepared)
    shard = (prepared.directory / "train-00001.src.ids").resolve()
    shard.write_bytes(shard.read_bytes()[:-2])
    with pytest.raises(UserError, match=rf"train-00001\.src\.ids: .* has [\d,]+ bytes \({shard}\); give"):
        Prepared.open(run.directory)
    shard.unlink()
    with pytest.raises(UserError, match=r"train-00001\.src\.ids: .* is missing \(.*\); give the command"):
        Prepared.open(run.directory)
    assert contents(prepare_in("cache", 60, tmp_path / "disk")) == expected
    assert contents(Prepared.open(run.directory)) == expected
    (tmp_path / "cache").rename(tmp_path / "gone")
    shard.write_bytes(b"")  # a damaged one that no prepared corpus points to any more
    assert contents(prepare_in("cache", 60, tmp_path / "disk")) == expected
    assert [path.name for path in (tmp_path / "disk").iterdir()] == [shard.parent.name]


def test_shards_cut_in_another_way_leave_those_of_runs_alone(prepare_in: Prepare, tmp_path: Path) -> None:
    run = prepare_in("cache", 60, tmp_path / "disk").link_into(tmp_path / "run" / "data")
    expected = contents(run)
    (run.directory.parent.parent / "cache" / run.fingerprint / "seen.src").unlink()
    assert contents(prepare_in("cache", 70, tmp_path / "disk")) == expected
    assert contents(Prepared.open(run.directory)) == expected
    assert len(list((tmp_path / "disk").iterdir())) == 2


def test_shards_that_do_not_fit_are_refused(prepare_in: Prepare) -> None:
    prepared = prepare_in("cache", 60)

    def edit(plain: dict[str, Any]) -> None:
        plain["train"]["shards"][1]["pairs"] += 1
        plain["train"]["shards"][2]["pairs"] -= 1

    reseal(prepared.directory, edit)
    with pytest.raises(
        UserError, match=r"train-00001\.src\.offsets: damaged: [\d,]+ bytes belong to its pairs"
    ):
        Prepared.open(prepared.directory)


def test_text_in_shards_has_the_same_blocks(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join("\n" if n % 7 == 3 else f"line {n}\n" for n in range(200)))
    data = DataConfig((SourceConfig((str(tmp_path / "a.txt"),), format="text"),), valid_size=10)
    stores = [
        prepare(replace(data, shards=ShardConfig(pairs)), CHARS, seed=1, cache=tmp_path / str(pairs)).train
        for pairs in (None, 31)
    ]
    whole, cut = (Blocks(store, 16) for store in stores)
    assert len(whole) == len(cut)
    assert all(np.array_equal(whole[n], cut[n]) for n in range(len(whole)))


@pytest.mark.parametrize(
    ("options", "message"),
    [((0,), "pairs: expected at least 1"), ((None, ("/d",)), "pairs: shards in directories .* need a size")],
)
def test_impossible_shards(options: tuple[object, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        ShardConfig(*options)  # type: ignore[arg-type]


def test_a_directory_that_cannot_be_written_is_named(prepare_in: Prepare, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file/disk: cannot write the prepared corpus"):
        prepare_in("cache", 60, tmp_path / "file" / "disk")
