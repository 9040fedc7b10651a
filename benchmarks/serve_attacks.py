"""What can somebody without a key, or with one, do to the other clients of a server?

    dragoman export RUN --out EXPORT
    python benchmarks/serve_attacks.py EXPORT
    python benchmarks/serve_attacks.py EXPORT --only "slow bodies" "tiny chunks"

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
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

from attack_client import PATIENCE_S, Seen, answer, asked, once, request, watch
from clients import connect
from common import write_table

HEALTHY, GREEDY = "the-key-of-the-healthy-client", "the-key-of-the-greedy-client"
HEAD = ["attack", "what it did", "200 for the healthy client", "worst s", "200 for /health", "worst s"]
HEAD += ["MiB", "MB of log", "tracebacks"]
Attack = Callable[[int, float], Awaitable[str]]
"""Port and seconds; what it achieved, in a few words."""


@contextlib.asynccontextmanager
async def held(
    port: int, count: int
) -> AsyncIterator[list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]:
    """Connections that are open together. Those that cannot be had are left out."""
    found = await asyncio.gather(*(connect(port) for _ in range(count)), return_exceptions=True)
    got = [one for one in found if not isinstance(one, BaseException)]
    try:
        yield got
    finally:
        for _, writer in got:
            writer.close()


def slow_bodies(path: str) -> Attack:
    """260 clients that send a byte every half second. Who is sent away comes again."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900\r\n\r\n".encode()

    async def attack(port: int, seconds: float) -> str:
        until, away = time.perf_counter() + seconds, 0

        async def one() -> None:
            nonlocal away
            while time.perf_counter() < until:
                with contextlib.suppress(OSError):
                    reader, writer = await connect(port)
                    writer.write(head)
                    answered = asyncio.ensure_future(reader.read(1))
                    while not answered.done() and time.perf_counter() < until:
                        writer.write(b"x")
                        await asyncio.wait({answered}, timeout=0.5)
                    away += answered.done()
                    answered.cancel()
                    writer.close()
                await asyncio.sleep(0.1)

        await asyncio.gather(*(one() for _ in range(260)), return_exceptions=True)
        return f"260 connections, sent away {away} times"

    return attack


def tiny_chunks(count: int) -> Attack:
    async def attack(port: int, seconds: float) -> str:
        head = b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        sent = 0

        async def one(until: float) -> None:
            nonlocal sent
            while time.perf_counter() < until:
                with contextlib.suppress(OSError, TimeoutError):
                    _, writer = await connect(port)
                    writer.write(head)
                    try:
                        while time.perf_counter() < until and not writer.is_closing():
                            writer.write(b"1\r\na\r\n" * 10_000)
                            await asyncio.wait_for(writer.drain(), 1)
                            sent += 60_000
                    finally:
                        writer.close()
                await asyncio.sleep(0.01)

        until = time.perf_counter() + seconds
        await asyncio.gather(*(one(until) for _ in range(count)))
        return f"{count} connections, {sent / 1e6:.0f} MB sent"

    return attack


async def idle_connections(port: int, seconds: float) -> str:
    async with held(port, 1200) as connections:
        for _, writer in connections:
            writer.write(request("GET", "/health"))
        await asyncio.sleep(seconds)
        return f"{len(connections)} connected of 1,200, server under ulimit -n 1024"


async def working_connections(port: int, seconds: float) -> str:
    """Not an attack: 500 clients, each with a connection that it keeps and uses every few seconds."""
    seen, until = Seen(), time.perf_counter() + seconds

    async def one(number: int) -> None:
        await asyncio.sleep(number / 100)
        reader, writer = await connect(port)
        while time.perf_counter() < until:
            writer.write(request("POST", "/api/v1/translate", asked(["The same for all."]), GREEDY))
            seen.statuses[await answer(reader)] += 1
            await asyncio.sleep(5)
        writer.close()

    outcome = await asyncio.gather(*(one(number) for number in range(500)), return_exceptions=True)
    broken = sum(isinstance(one, BaseException) for one in outcome)
    return f"500 connections: {seen}, {broken} broken"


def uploads(count: int, size: int) -> Attack:
    async def attack(port: int, seconds: float) -> str:
        head = b"POST /v2/document HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        head += b"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: %d\r\n\r\n" % (size + 1)
        part = bytes(1 << 16)
        sent = 0

        async def one(writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            with contextlib.suppress(OSError, TimeoutError):
                writer.write(head)
                for _ in range(size // len(part)):
                    writer.write(part)
                    await asyncio.wait_for(writer.drain(), 5)
                    sent += len(part)

        async with held(port, count) as connections:
            until = time.perf_counter() + seconds
            await asyncio.gather(*(one(writer) for _, writer in connections))
            await asyncio.sleep(max(0.0, until - time.perf_counter()))
        return f"{count} × {size >> 20} MiB, {sent >> 20} MiB taken"

    return attack


def greedy(count: int, key: str) -> Attack:
    """64 texts of 5,000 characters a request, one after the other on each connection."""

    async def attack(port: int, seconds: float) -> str:
        numbers, seen, until = itertools.count(), Seen(), time.perf_counter() + seconds

        def text() -> str:
            return " ".join(f"Sentence {next(numbers)} is long enough." for _ in range(160))[:5000]

        async def one() -> None:
            while time.perf_counter() < until:
                with contextlib.suppress(OSError, EOFError, TimeoutError):
                    async with asyncio.timeout(seconds + 5):
                        reader, writer = await connect(port)
                        writer.write(
                            request("POST", "/api/v1/translate", asked([text() for _ in range(64)]), key)
                        )
                        seen.statuses[await answer(reader)] += 1
                        writer.close()
                await asyncio.sleep(0.02)

        await asyncio.gather(*(one() for _ in range(count)))
        return f"{count} at once: {seen}"

    return attack


async def guesses(port: int, seconds: float) -> str:
    """Wrong keys, one after the other on each of 32 connections."""
    tried, until = 0, time.perf_counter() + seconds

    async def one(number: int) -> None:
        nonlocal tried
        with contextlib.suppress(OSError, EOFError, TimeoutError):
            async with asyncio.timeout(seconds):
                reader, writer = await connect(port)
                while time.perf_counter() < until:
                    writer.write(request("GET", "/v2/usage", key=f"guess-{number}-{tried}"))
                    await answer(reader)
                    tried += 1

    await asyncio.gather(*(one(number) for number in range(32)))
    return f"32 connections, {tried / seconds:.0f} guesses a second"


async def nothing(port: int, seconds: float) -> str:
    del port
    await asyncio.sleep(seconds)
    return ""


ATTACKS: dict[str, Attack] = {
    "nobody": nothing,
    "slow bodies to /v2/document": slow_bodies("/v2/document"),
    "slow bodies to /api/v1/translate": slow_bodies("/api/v1/translate"),
    "tiny chunks, 1 connection": tiny_chunks(1),
    "tiny chunks, 8 connections": tiny_chunks(8),
    "idle connections": idle_connections,
    "500 working connections with a key": working_connections,
    "uploads that are held": uploads(40, 14 << 20),
    "large uploads that are held": uploads(250, 15 << 20),
    "greedy client with another key": greedy(2, GREEDY),
    "16 greedy requests at once": greedy(16, GREEDY),
    "greedy client with the same key": greedy(2, HEALTHY),
    "guessed keys": guesses,
}


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
        achieved = await ATTACKS[name](port, seconds)
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
    for name in ATTACKS:
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
