"""What does it cost to verify every block of a store before its first use, and how large should one be?

    python benchmarks/verify_cost.py                        a million pairs
    python benchmarks/verify_cost.py 20000 --no-write       a quick look

Each way of reading runs in a process of its own, in turns: the files as they are, without any check (as
stores were read before they had hashes), and with blocks of several sizes. A process opens the store, plans
an epoch, loads all its pairs in batches, loads them once more, and verifies all files. Times are CPU seconds
of the process; the files are in the system's cache.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dragoman.data.store import PairStore

BLOCKS = (1 << 16, 1 << 18, 1 << 20, 1 << 22)
BATCH_TOKENS = 4096
SIDES = ("src", "tgt")
UNCHECKED = 0


class _Shard:
    def __init__(self, directory: Path) -> None:
        self._ids = {side: mapped(directory, f"{side}.ids", np.uint16) for side in SIDES}
        self._offsets = {side: mapped(directory, f"{side}.offsets", np.int64) for side in SIDES}

    def ids(self, side: str, index: int) -> np.ndarray:
        offsets = self._offsets[side]
        return self._ids[side][offsets[index] : offsets[index + 1]]


class UncheckedStore:
    """Pairs as they were read before: mapped, and believed."""

    linked = False

    def __init__(self, directory: Path, store: "PairStore") -> None:
        self.corpora, self.origin = store.corpora, store.origin
        self.src_lengths, self.tgt_lengths = (
            mapped(directory, f"{side}.lengths", np.int32) for side in SIDES
        )
        self._size, self._starts, self._shards = len(store), [0], [_Shard(directory)]

    def __len__(self) -> int:
        return self._size

    def src(self, index: int) -> np.ndarray:
        return self._side("src", index)

    def tgt(self, index: int) -> np.ndarray:
        return self._side("tgt", index)

    def _side(self, side: str, index: int) -> np.ndarray:
        if not 0 <= index < self._size:
            raise IndexError(index)
        number = bisect_right(self._starts, index) - 1
        return self._shard(number).ids(side, index - self._starts[number])

    def _shard(self, number: int) -> _Shard:
        return self._shards[number]


def mapped(directory: Path, name: str, dtype: type) -> np.ndarray:
    return np.memmap(directory / f"train.{name}", dtype=dtype, mode="r").view(np.ndarray)


def read_here(directory: Path, block: int) -> dict[str, float]:
    from dragoman.data.prepared import Prepared
    from dragoman.data.sampler import BucketSampler
    from dragoman.data.seal import read_seal
    from dragoman.data.store import load_pairs

    def timed(act: Callable[[], Any]) -> tuple[float, Any]:
        began = time.process_time()
        found = act()
        return time.process_time() - began, found

    Prepared.open(directory)  # what is loaded with it is loaded
    opening, prepared = timed(lambda: Prepared.open(directory))
    store: Any = prepared.train
    if block == UNCHECKED:
        store = UncheckedStore(directory, prepared.train)
    seal, (_, files) = timed(lambda: read_seal(directory))

    def plan() -> list[np.ndarray]:
        sampler = BucketSampler(store.src_lengths, store.tgt_lengths, batch_tokens=BATCH_TOKENS, seed=1)
        return list(sampler.batches(0))

    planning, batches = timed(plan)
    first, _ = timed(lambda: load_pairs(store, batches[0]))
    rest, _ = timed(lambda: [load_pairs(store, batch) for batch in batches[1:]])
    again, _ = timed(lambda: [load_pairs(store, batch) for batch in batches])
    whole, found = timed(lambda: list(files.findings()))
    assert not found
    return {
        "open": opening - (seal if block == UNCHECKED else 0),
        "plan": planning,
        "first": first,
        "epoch": first + rest,
        "again": again,
        "whole": whole,
        "table": sum(len(each.digests) for each in files.hashed.values()),
        "bytes": sum(each.size for each in files.hashed.values()),
        "pairs": len(prepared.train),
    }


def prepare_here(directory: Path, pairs: int) -> Path:
    from dragoman.data.corpus import DataConfig, SourceConfig, prepare
    from dragoman.text.tokenizer import TokenizerConfig
    from prepare import generated

    paths = [directory / f"a.{side}" for side in ("src", "tgt")]
    with paths[0].open("w", encoding="utf-8") as src, paths[1].open("w", encoding="utf-8") as tgt:
        for source, target in islice(generated(), pairs):
            src.write(source + "\n")
            tgt.write(target + "\n")
    data = DataConfig((SourceConfig(tuple(map(str, paths))),))
    return prepare(data, TokenizerConfig(vocab_size=8000), seed=1, cache=directory / "cache").directory


def with_blocks(store: Path, target: Path, block: int) -> Path:
    """The same store with hashes of blocks of another size."""
    from dragoman.data.seal import HASHES, META, read_seal, write_seal
    from dragoman.data.verified_files import OutputFiles

    shutil.copytree(store, target, ignore=shutil.ignore_patterns(META, HASHES))
    with OutputFiles() as output:
        output.block = block
        for path in sorted(target.iterdir()):
            output.add(path)
    write_seal(target, read_seal(store)[0], output)
    return target


def child(directory: Path, block: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", str(directory), str(block)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def in_turns(stores: dict[int, Path], turns: Sequence[int], rounds: int) -> dict[int, dict[str, float]]:
    """The medians of each way of reading."""
    found: dict[int, list[dict[str, float]]] = {block: [] for block in turns}
    for number in range(rounds):
        first = number % len(turns)
        for block in (*turns[first:], *turns[:first]):
            found[block].append(child(stores[block], block))
            print(f"  {number + 1}/{rounds}  {block:8} {found[block][-1]}", flush=True)
    return {
        block: {key: float(np.median([each[key] for each in runs])) for key in runs[0]}
        for block, runs in found.items()
    }


def row(block: int, figures: dict[str, float]) -> tuple[str, ...]:
    name = "no check" if block == UNCHECKED else f"{block >> 10:,} KiB"
    checked = block != UNCHECKED
    return (
        name,
        f"{figures['table'] / 1024:,.0f}" if checked else "",
        f"{1000 * figures['open']:.0f}",
        f"{figures['plan']:.2f}",
        f"{1000 * figures['first']:.1f}",
        f"{figures['epoch']:.2f}",
        f"{figures['again']:.2f}",
        f"{figures['whole']:.2f}" if checked else "",
    )


HEAD = (
    "blocks of",
    "table, KiB",
    "opening, ms",
    "planning an epoch, s",
    "first batch, ms",
    "first epoch, s",
    "another epoch, s",
    "verifying all files, s",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", type=Path, help="prepared data, in place of made-up ones")
    parser.add_argument("--no-write", action="store_true")
    parser.add_argument("--child", nargs=2, metavar=("DIRECTORY", "BLOCK"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(read_here(Path(options.child[0]), int(options.child[1]))))
        return
    from common import write_table
    from dragoman.data.verified_files import BLOCK_BYTES

    with tempfile.TemporaryDirectory() as name:
        store = options.store or prepare_here(Path(name), options.pairs)
        stores = {block: with_blocks(store, Path(name) / str(block), block) for block in BLOCKS}
        stores[UNCHECKED] = stores[BLOCK_BYTES]
        read = in_turns(stores, (UNCHECKED, *BLOCKS), options.rounds)
    kept = read[UNCHECKED]
    checked = 1e6 * (read[BLOCK_BYTES]["epoch"] - kept["epoch"]) / kept["pairs"]
    notes = (
        f"`python benchmarks/verify_cost.py {options.pairs}`: {kept['pairs']:,.0f} pairs after cleaning, "
        f"{kept['bytes'] / 2**20:,.0f} MiB, batches of {BATCH_TOKENS} tokens, medians of {options.rounds} "
        "processes each, in turns. CPU seconds, files in the system's cache. `no check` maps the files and "
        "believes them, as stores were read before they had hashes. Loading is that of ids alone: nothing is "
        f"learnt. With blocks of {BLOCK_BYTES >> 10} KiB, the size in use, checks take {checked:.2f} µs a "
        "pair of the first epoch; with Transformer-base on an H200 a pair takes about 50 µs "
        "([train_gpu.md](train_gpu.md)), and is loaded in a thread beside it."
    )
    rows = [row(block, figures) for block, figures in read.items()]
    title = "What verifying a store costs, by the size of its blocks"
    write_table("verify_cost", title, HEAD, rows, notes, keep=not options.no_write)


if __name__ == "__main__":
    main()
