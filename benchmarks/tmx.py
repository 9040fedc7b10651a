"""How long does reading a large translation memory take, and how much memory? Target: 300 MB with 400,000
units in 2 minutes on 2 cores, in 512 MiB.

    python benchmarks/tmx.py                             a generated memory, in UTF-8 and as Trados writes it
    python benchmarks/tmx.py --units 40000

Each file is read by a process of its own, once as pairs alone and once as `dragoman corpus` reports on it;
the system tells its peak memory.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

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
    from dragoman.data.config import SourceConfig
    from dragoman.data.formats import read_pairs
    from dragoman.data.report import analyse

    started = time.perf_counter()
    first: float | None = None

    def progress(_stage: str, _done: int, _total: int | None) -> None:
        nonlocal first
        first = first or time.perf_counter() - started

    source = SourceConfig((path,))
    if what == "pairs":
        pairs = sum(bool(pair.src and pair.tgt) for pair in read_pairs(source, "en", "de"))
    else:
        pairs = analyse([source], src_lang="en", tgt_lang="de", progress=progress).pairs
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"pairs": pairs, "seconds": seconds, "first": first, "peak": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--units", type=int, default=400_000)
    parser.add_argument("--measure", nargs=2, metavar=("FILE", "WHAT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure_here(*arguments.measure)
        return
    print("# Reading a translation memory\n")
    print("| memory | units | what is done | seconds | first progress | peak, MiB |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for encoding in ("utf-8", "utf-16"):
            path = Path(folder) / f"{encoding}.tmx"
            write_memory(path, arguments.units, encoding)
            size = f"{encoding.upper()}, {path.stat().st_size / 1e6:,.0f} MB"
            for what, name in (("pairs", "pairs alone"), ("corpus", "as `dragoman corpus`")):
                command = [sys.executable, __file__, "--measure", str(path), what]
                done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
                found = json.loads(done.stdout)
                first = "" if found["first"] is None else f"{found['first']:.1f} s"
                print(
                    f"| {size} | {found['pairs']:,} | {name} | {found['seconds']:.1f} | {first} |"
                    f" {found['peak']:.0f} |",
                    flush=True,
                )
            path.unlink()
    print(f"\nTarget: 120 s, 512 MiB. {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
