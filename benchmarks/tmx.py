"""How long does reading a large translation memory take, and how much memory? Target: 300 MB with 400,000
units in 2 minutes on 2 cores, in 512 MiB.

    python benchmarks/tmx.py                             a generated memory, in UTF-8 and as Trados writes it
    python benchmarks/tmx.py --units 40000

Each file is read by a process of its own: as pairs alone, as `dragoman corpus` reports on it, and as
`dragoman train` prepares it. Memory is counted of that process and all that it starts.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.data.config import SourceConfig
from dragoman.data.scan import StageProgress
from prepare import generated

HEADER = (
    '<?xml version="1.0" encoding="{encoding}"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n'
    '<header creationtool="generated" creationtoolversion="1" segtype="sentence" o-tmf="none" adminlang="en"'
    ' srclang="en-US" datatype="plaintext"/>\n<body>\n'
)
UNIT = (
    '<tu tuid="{n}" creationdate="20240101T120000Z" changedate="20240102T120000Z">\n'
    '  <prop type="x-project">generated</prop>\n  <note>unit {n}</note>\n'
    '  <tuv xml:lang="en-US">\n    <seg>{src}</seg>\n  </tuv>\n'
    '  <tuv xml:lang="de-DE" creationid="someone" usagecount="3">\n    <seg>{tgt}</seg>\n  </tuv>\n</tu>\n'
)
TAGS = ('<bpt i="1" x="1">&lt;b&gt;</bpt>', '<ept i="1">&lt;/b&gt;</ept>')
EVERY_S = 0.1
WHAT = {"pairs": "pairs alone", "corpus": "as `dragoman corpus`", "train": "as `dragoman train` prepares it"}
FOOTER = "</body>\n</tmx>\n"


def write_memory(path: Path, units: int, encoding: str) -> None:
    """Every third unit has a pair of inline codes."""
    with path.open("w", encoding=encoding) as file:
        file.write(HEADER.format(encoding=encoding.upper()))
        for n, sides in enumerate(islice(generated(), units)):
            src, tgt = (side if n % 3 else f"{TAGS[0]}{side[:6]}{TAGS[1]}{side[6:]}" for side in sides)
            file.write(UNIT.format(n=n, src=src, tgt=tgt))
        file.write(FOOTER)


def measure_here(path: str, what: str) -> None:
    """What the measured process does; prints its figures as JSON."""
    started = time.perf_counter()
    first: float | None = None

    def progress(_stage: str, _done: int, _total: int | None) -> None:
        nonlocal first
        first = first or time.perf_counter() - started

    pairs = {"pairs": _pairs, "corpus": _corpus, "train": _train}[what](path, progress)
    print(json.dumps({"pairs": pairs, "seconds": time.perf_counter() - started, "first": first}))


def _pairs(path: str, _: StageProgress) -> int:
    from dragoman.data.formats import read_pairs

    return sum(bool(pair.src and pair.tgt) for pair in read_pairs(SourceConfig((path,)), "en", "de"))


def _corpus(path: str, progress: StageProgress) -> int:
    from dragoman.data.report import analyse

    return analyse([SourceConfig((path,))], src_lang="en", tgt_lang="de", progress=progress).pairs


def _train(path: str, progress: StageProgress) -> int:
    """All that is done before the first update, but for the trial of a few."""
    from dragoman.data.corpus import prepare
    from dragoman.training.display import make_display
    from dragoman.training.draft import make_draft

    display = make_display(quiet=True)
    with tempfile.TemporaryDirectory() as cache, contextlib.ExitStack() as stack:
        draft = make_draft([path], stack, Path(cache), overrides=(), valid=(), display=display)
        config = draft.config
        made = prepare(config.data, config.tokenizer, seed=config.seed, cache=Path(cache), progress=progress)
        return len(made.train) + len(made.valid) + sum(made.dropped.values())


def descendants(process: int) -> list[int]:
    """A process and all that it has started, as far as they live."""
    found = [process]
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in task.read_text().split():
                found += descendants(int(child))
    return found


def memory_of(process: int) -> float:
    """MiB of a whole tree of processes. What several of them map counts once (PSS)."""
    total = 0
    for one in descendants(process):
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def measured(path: Path, what: str) -> dict[str, Any]:
    """The figures of a process of its own, and the greatest memory of it and its workers."""
    command = [sys.executable, __file__, "--measure", str(path), what]
    peak, most = 0.0, 1
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak, most = max(peak, memory_of(process.pid)), max(most, len(descendants(process.pid)))
            time.sleep(EVERY_S)
        told = process.communicate()[0]
    if process.returncode:
        raise SystemExit(f"{what}: ended with status {process.returncode}")
    return json.loads(told) | {"peak": peak, "processes": most}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--units", type=int, default=400_000)
    parser.add_argument("--encodings", nargs="+", default=["utf-8", "utf-16"])
    parser.add_argument("--measure", nargs=2, metavar=("FILE", "WHAT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure_here(*arguments.measure)
        return
    print("# Reading a translation memory\n")
    print("| memory | units | what is done | seconds | first progress | processes | peak of all, MiB |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for encoding in arguments.encodings:
            path = Path(folder) / f"{encoding}.tmx"
            write_memory(path, arguments.units, encoding)
            size = f"{encoding.upper()}, {path.stat().st_size / 1e6:,.0f} MB"
            for what, name in WHAT.items():
                found = measured(path, what)
                first = "" if found["first"] is None else f"{found['first']:.1f} s"
                print(
                    f"| {size} | {found['pairs']:,} | {name} | {found['seconds']:.1f} | {first} |"
                    f" {found['processes']} | {found['peak']:.0f} |",
                    flush=True,
                )
            path.unlink()
    print(f"\nTarget: 120 s, 512 MiB. {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}.")
    print(f"Memory is that of all processes together (PSS), looked at every {EVERY_S:g} s.")


if __name__ == "__main__":
    main()
