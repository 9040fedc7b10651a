"""How long does preparing a corpus take, and how much memory? Target: a million pairs, 2 minutes, 1 GiB.

    python benchmarks/prepare.py                         a generated corpus of a million pairs
    python benchmarks/prepare.py train.en.gz train.de.gz your files, repeated with changes up to --pairs

Preparing runs in a process of its own, whose peak memory the system reports. The corpus lies in a temporary
directory as plain text, and nothing is cached.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from dragoman.data.config import SourceConfig
from dragoman.data.formats import read_pairs

STAGES = ("hash", "read", "learn vocabulary", "encode")


def generated(seed: int = 1) -> Iterator[tuple[str, str]]:
    """Endless pairs: Zipf-distributed words (some 100,000 forms), about 24 words a side."""
    rng = random.Random(seed)
    letters = "eeeeeennniiisssrrraaatttdddhhuulcgmobwfkzvüpäßjöyqx"
    forms = [
        [
            "".join(rng.choices(letters, k=min(18, 2 + rank.bit_length() // 2 + rng.randrange(5))))
            for rank in range(100_000)
        ]
        for _ in ("source", "target")
    ]
    ranks = range(1, 100_001)
    total = 0.0
    cumulative = [total := total + 1 / (rank + 3) for rank in ranks]
    while True:
        words = max(1, round(rng.lognormvariate(3.0, 0.55)))
        picks = rng.choices(range(100_000), cum_weights=cumulative, k=words)
        src = " ".join(forms[0][pick] for pick in picks).capitalize() + "."
        tgt = " ".join(forms[1][pick] for pick in picks if rng.random() < 0.97).capitalize() + "."
        yield src, tgt


def repeated(files: list[str]) -> Iterator[tuple[str, str]]:
    """Endless pairs: the files, then the files again with a number after every sentence."""
    source = SourceConfig(tuple(files))
    for round_number in range(1 << 30):
        tail = f" ({round_number})" if round_number else ""
        for pair in read_pairs(source, "src", "tgt"):
            yield pair.src + tail, pair.tgt + tail


def children_peak() -> float:
    """MiB that the children of this process have had at most, added up. (Their rusage would count what they
    shared with us before they became programs of their own.)"""
    kib = 0
    for task in Path("/proc/self/task").iterdir():  # a thread may have started them
        for child in (task / "children").read_text().split():
            with suppress(OSError):
                status = Path(f"/proc/{child}/status").read_text()
                kib += next((int(x.split()[1]) for x in status.splitlines() if x.startswith("VmHWM")), 0)
    return kib / 1024


def prepare_here(src: str, tgt: str, cache: str, vocab_size: int) -> None:
    """What the measured process does; prints its figures as JSON."""
    from dragoman.data.corpus import DataConfig, prepare
    from dragoman.text.tokenizer import TokenizerConfig

    seconds = dict.fromkeys(STAGES, 0.0)
    current, last = STAGES[0], time.perf_counter()
    workers_peak = 0.0

    def progress(stage: str, done: int, total: int | None) -> None:  # noqa: ARG001
        nonlocal current, last, workers_peak
        workers_peak = max(workers_peak, children_peak())
        now = time.perf_counter()
        seconds[current] += now - last
        current, last = stage, now

    began = time.perf_counter()
    data = DataConfig((SourceConfig((src, tgt)),))
    prepared = prepare(
        data, TokenizerConfig(vocab_size=vocab_size), seed=1, cache=Path(cache), progress=progress
    )
    whole = time.perf_counter() - began
    began = time.perf_counter()
    prepare(data, TokenizerConfig(vocab_size=vocab_size), seed=1, cache=Path(cache))
    own, child = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    figures = {
        "train": len(prepared.train),
        "valid": len(prepared.valid),
        "tokens": int(prepared.train.src_lengths.sum() + prepared.train.tgt_lengths.sum()),
        "dropped": prepared.dropped,
        "stages": seconds,
        "seconds": whole,
        "again": time.perf_counter() - began,
        "cpu": own.ru_utime + own.ru_stime + child.ru_utime + child.ru_stime,
        "peak": own.ru_maxrss / 1024 + workers_peak,
        "disk": sum(path.stat().st_size for path in prepared.directory.iterdir()) / 2**20,
    }
    print(json.dumps(figures))


def measure(files: list[str], pairs: int, vocab_size: int) -> dict:
    with tempfile.TemporaryDirectory() as directory:
        paths = [Path(directory) / f"train.{suffix}" for suffix in ("src", "tgt")]
        texts = repeated(files) if files else generated()
        with (
            paths[0].open("w", encoding="utf-8", newline="\n") as src_file,
            paths[1].open("w", encoding="utf-8", newline="\n") as tgt_file,
        ):
            for src, tgt in islice(texts, pairs):
                src_file.write(src + "\n")
                tgt_file.write(tgt + "\n")
        size = sum(path.stat().st_size for path in paths) / 2**20
        command = [
            sys.executable,
            __file__,
            "--child",
            str(Path(directory) / "cache"),
            "--vocab-size",
            str(vocab_size),
        ]
        done = subprocess.run([*command, *map(str, paths)], check=True, capture_output=True, text=True)
        return json.loads(done.stdout) | {"pairs": pairs, "size": size}


def rows_of(figures: dict, files: list[str]) -> list[tuple[str, str]]:
    names = " ".join(Path(file).name for file in files)
    return [
        ("corpus", f"{names}, repeated with changes" if files else "generated"),
        ("pairs", f"{figures['pairs']:,} ({figures['size']:.0f} MiB of text)"),
        ("kept", f"{figures['train']:,} for training, {figures['valid']:,} for validation"),
        ("tokens", f"{figures['tokens']:,}"),
        *((f"{stage}, seconds", f"{seconds:.1f}") for stage, seconds in figures["stages"].items()),
        ("**all, seconds**", f"**{figures['seconds']:.1f}** (target 120 for a million pairs)"),
        ("CPU seconds", f"{figures['cpu']:.1f}"),
        ("**peak memory, MiB**", f"**{figures['peak']:.0f}** (target 1024)"),
        ("prepared corpus, MiB", f"{figures['disk']:.0f}"),
        ("again, from the cache, seconds", f"{figures['again']:.1f}"),
        ("cores, load", f"{len(os.sched_getaffinity(0))}, {os.getloadavg()[0]:.1f}"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="source and target file, or one table of pairs")
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--vocab-size", type=int, default=8000)
    parser.add_argument("--child", metavar="CACHE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        prepare_here(*arguments.files, arguments.child, arguments.vocab_size)
        return
    from common import write_table  # only here: torch has no place in the measured process

    figures = measure(arguments.files, arguments.pairs, arguments.vocab_size)
    notes = (
        "A stage is the time from its first sign of life to that of the next; large corpora are encoded by a "
        "process a core, whose memory is counted in."
    )
    write_table("prepare", "Preparing a corpus", ("", ""), rows_of(figures, arguments.files), notes)


if __name__ == "__main__":
    main()
