"""Does memory grow with the corpus? Preparing and reading stores in shards, of made-up pairs.

    python benchmarks/store.py                     2 and 20 million pairs
    python benchmarks/store.py 100000 --no-write   a quick look

Preparing and reading run in processes of their own. Memory is what they and their children hold themselves
(anonymous); mapped files, whose pages the system takes back when it needs them, are told beside it. Reading
is that of one rank of eight: it plans all batches, and loads every eighth.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

WORDS = "ab bad cab deaf edge fig gab head idea jab keg lab made neb odd peg quad red sad tag urge vat web"
SIZES = (2_000_000, 20_000_000)
SHARDS = 10
RANKS, BATCH_TOKENS, WINDOWS = 8, 4096, 3


def made_up(number: int) -> tuple[str, str]:
    """A pair of 4 to 8 words that no other number has."""
    words = WORDS.split()
    mixed, chosen = (number * 2_654_435_761) % 2**32, []
    for _ in range(4 + number % 5):
        mixed, word = divmod(mixed, len(words))
        chosen.append(words[word])
    return f"{' '.join(chosen)} {number:x}", f"{number:x} {' '.join(reversed(chosen))}"


class Memory:
    """The most that this process and its children have held, in MiB, looked at every 50 ms."""

    def __init__(self) -> None:
        self.own = self.mapped = 0.0

    def look(self) -> None:
        own = mapped = 0
        pids = ["self"]
        for task in Path("/proc/self/task").iterdir():
            with suppress(OSError):
                pids += (task / "children").read_text().split()
        for pid in pids:
            with suppress(OSError, KeyError):  # a child may be ending
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                found = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Rss")}
                own += int(found["RssAnon"])
                mapped += int(found["RssFile"])
        self.own, self.mapped = max(self.own, own / 1024), max(self.mapped, mapped / 1024)


@contextmanager
def watched() -> Iterator[Memory]:
    memory, ended = Memory(), threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            memory.look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    yield memory
    ended.set()
    thread.join()


def prepare_here(directory: Path, pairs: int) -> dict[str, float]:
    from dragoman.data.corpus import DataConfig, ShardConfig, SourceConfig, prepare
    from dragoman.text.tokenizer import TokenizerConfig

    disks = tuple(str(directory / disk) for disk in ("disk1", "disk2"))
    source = SourceConfig((str(directory / "a.src"), str(directory / "a.tgt")))
    data = DataConfig((source,), shards=ShardConfig(-(-pairs // SHARDS), disks))
    began = time.perf_counter()
    with watched() as memory:
        prepared = prepare(data, TokenizerConfig(vocab_size=1000), seed=1, cache=directory / "cache")
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    sizes = {path: path.stat().st_size for path in prepared.directory.iterdir()}
    return {
        "seconds": time.perf_counter() - began,
        "cpu": sum(each.ru_utime + each.ru_stime for each in used),
        "own": memory.own,
        "mapped": memory.mapped,
        "kept": len(prepared.train),
        "tokens": int(prepared.train.src_lengths.sum() + prepared.train.tgt_lengths.sum()),
        "index": sum(size for path, size in sizes.items() if not path.is_symlink()),
        "shards": sum(size for path, size in sizes.items() if path.is_symlink()),
    }


def read_here(directory: Path) -> dict[str, float]:
    """The first windows of an epoch as rank 3 of 8, then a new start at its last batch."""
    from dragoman.data.corpus import Prepared
    from dragoman.data.sampler import BucketSampler, Window
    from dragoman.learning.translate import Pairs

    with watched() as memory:
        prepared = Prepared.open(next(path for path in (directory / "cache").iterdir() if path.is_dir()))
        pairs = Pairs(prepared.train, (prepared.src_tokenizer, prepared.tgt_tokenizer))
        began = time.perf_counter()
        sampler = BucketSampler(pairs.src_lengths, pairs.tgt_lengths, batch_tokens=BATCH_TOKENS, seed=1)
        begun = time.perf_counter() - began
        tokens = 0
        place, last = 0, Window()
        began = time.perf_counter()
        for place, (batch, window) in enumerate(sampler.placed(0)):
            if window.number == WINDOWS:
                break
            last = window
            if place % RANKS == 3:
                tokens += pairs.batch(batch, 0).num_tokens
        seconds = time.perf_counter() - began
        began = time.perf_counter()
        next(sampler.placed(0, place - 1, last))
        again = time.perf_counter() - began
    return {
        "begin": begun,
        "speed": tokens / seconds,
        "own": memory.own,
        "mapped": memory.mapped,
        "again": again,
        "opened": prepared.train.opened,
    }


def child(directory: Path, *what: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", str(directory), *what]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def measure(pairs: int) -> tuple[dict[str, float], dict[str, float]]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with (directory / "a.src").open("w") as src, (directory / "a.tgt").open("w") as tgt:
            for number in range(pairs):
                left, right = made_up(number)
                src.write(left + "\n")
                tgt.write(right + "\n")
        return child(directory, str(pairs)), child(directory)


def row(pairs: int, made: dict[str, float], read: dict[str, float]) -> tuple[str, ...]:
    return (
        f"{pairs:,}",
        f"{made['tokens'] / made['kept'] / 2:.1f}",
        f"{made['seconds']:.0f} ({made['cpu']:.0f})",
        f"{made['own']:.0f} (+{made['mapped']:.0f})",
        f"{made['index'] / made['kept']:.1f} + {made['shards'] / made['kept']:.1f}",
        f"{read['own']:.0f} (+{read['mapped']:.0f})",
        f"{read['begin']:.2f}",
        f"{read['speed'] / 1000:.0f}",
        f"{read['again']:.2f}",
    )


HEAD = (
    "pairs",
    "tokens a side",
    "preparing, s (CPU s)",
    "its memory, MiB (+ mapped files)",
    "bytes a pair: index + shards",
    "reading: memory, MiB (+ mapped files)",
    "first look, s",
    "thousand target tokens/s",
    "going on in a later window, s",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--no-write", action="store_true")
    parser.add_argument("--child", metavar="DIRECTORY", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        directory = Path(options.child)
        given = options.pairs if options.pairs != list(SIZES) else []
        print(json.dumps(prepare_here(directory, given[0]) if given else read_here(directory)))
        return
    from common import write_table

    rows = [row(pairs, *measure(pairs)) for pairs in options.pairs]
    notes = (
        f"`python benchmarks/store.py`: made-up pairs, {SHARDS} shards in two directories. Memory is "
        "anonymous memory, at its peak, of the process and its workers; pages of mapped files are beside it, "
        f"which the system takes back when it needs them. Reading is {WINDOWS} windows of up to 1,048,576 "
        f"pairs by one rank of {RANKS}, in batches of {BATCH_TOKENS} tokens: it plans all, loads an eighth."
    )
    if options.no_write:
        for each in rows:
            print(dict(zip(HEAD, each, strict=True)))
        return
    write_table("store", "Stores in shards: does memory grow with the corpus?", HEAD, rows, notes)


if __name__ == "__main__":
    main()
