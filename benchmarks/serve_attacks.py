"""What can somebody without a key, or with one, do to the other clients of a server?

    python benchmarks/serve_attacks.py RUN
    python benchmarks/serve_attacks.py RUN --only "slow bodies" "tiny chunks"

RUN may be an export, but one explains nothing.

Each attack has a server of its own, with keys, and everything is on this machine. While it lasts a client
with a key asks for one sentence after the other, each on a new connection: how many got 200, and how long
the slowest took. Beside it somebody asks `/health` all the time. Attacks come without a key unless their
name says otherwise.
"""

import argparse
import asyncio
import contextlib
import itertools
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from attacks import ATTACKS, GREEDY, HEALTHY, PATIENCE_S, Seen, asked, once, request, watch
from attacks_with_key import WITH_KEY
from common import write_table

ALL = ATTACKS | WITH_KEY
HEAD = ["attack", "what it did", "200 for the healthy client", "worst s", "200 for /health", "worst s"]
HEAD += ["MiB", "MB of log", "tracebacks"]


@contextlib.asynccontextmanager
async def serving(export: Path, files: int) -> AsyncIterator[tuple[int, int, Path]]:
    """A server process, its port, and its log."""
    with tempfile.TemporaryDirectory() as folder:
        keys, log = Path(folder, "keys"), Path(folder, "log")
        keys.write_text(f"{HEALTHY}\n{GREEDY}\n")
        keys.chmod(0o600)
        command = [sys.executable, "-m", "dragoman", "serve", str(export), "--port", "0"]
        with log.open("wb") as told:
            process = subprocess.Popen(
                [*command, "--key-file", str(keys)],
                stderr=told,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
            )
        try:
            for _ in range(600):
                await asyncio.sleep(0.1)
                if found := re.match(rb"http://[^:]+:(\d+)/", log.read_bytes()):
                    yield process.pid, int(found[1]), log
                    break
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
            process.wait()


def resident_mib(process: int) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def peak(process: int, until: asyncio.Event) -> float:
    found = 0.0
    while not until.is_set():
        found = max(found, resident_mib(process))
        await asyncio.sleep(0.1)
    return found


async def row(name: str, export: Path, seconds: float, numbers: Iterator[int]) -> list[str]:
    def sentence() -> bytes:
        return request("POST", "/api/v1/translate", asked([f"The healthy one asks {next(numbers)}"]), HEALTHY)

    async with serving(export, 1024) as (process, port, log):
        for _ in range(3):
            await once(port, sentence(), Seen())
        before, over = resident_mib(process), asyncio.Event()
        tasks = [
            asyncio.create_task(watch(port, sentence, over)),
            asyncio.create_task(watch(port, lambda: request("GET", "/health"), over)),
        ]
        memory = asyncio.create_task(peak(process, over))
        achieved = await ALL[name](port, seconds)
        over.set()
        healthy, health = [await task for task in tasks]
        grown = await memory - before
        lines = log.read_bytes()
    tracebacks = lines.count(b"Traceback")
    return [
        name, achieved, str(healthy), f"{healthy.worst_s:.1f}", str(health), f"{health.worst_s:.1f}",
        f"{grown:+.0f}", f"{len(lines) / 1e6:.1f}", str(tracebacks),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("export", type=Path)
    parser.add_argument("--only", nargs="+", default=[], help="Attacks whose name begins so.")
    parser.add_argument("--seconds", type=float, default=12)
    arguments = parser.parse_args()
    numbers = itertools.count()
    rows: list[list[str]] = []
    for name in ALL:
        if not arguments.only or name.startswith(tuple(arguments.only)):
            rows.append(asyncio.run(row(name, arguments.export, arguments.seconds, numbers)))
            print(*rows[-1], sep=" | ", flush=True)
    write_table(
        "serve_attacks",
        "What one client can do to the others",
        HEAD,
        rows,
        f"{arguments.seconds:g} s each. A request without an answer within {PATIENCE_S:g} s counts as lost."
        " «MiB» is what the server grew by at most.",
        keep=not arguments.only,
    )


if __name__ == "__main__":
    main()
