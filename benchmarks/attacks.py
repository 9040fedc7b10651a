"""What somebody can do to a server on this machine: attacks, and the clients that feel them."""

import asyncio
import contextlib
import itertools
import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from clients import connect

HEALTHY, GREEDY = "the-key-of-the-healthy-client", "the-key-of-the-greedy-client"
PATIENCE_S = 10.0
PAUSE_S = 0.1
Attack = Callable[[int, float], Awaitable[str]]
"""Port and seconds; what it achieved, in a few words."""


@dataclass
class Seen:
    statuses: Counter[int] = field(default_factory=Counter)
    worst_s: float = 0.0

    def __str__(self) -> str:
        others = ", ".join(f"{count} × {status or 'lost'}" for status, count in self.statuses.items())
        return f"{self.statuses[200]} of {self.statuses.total()}" + (
            f" ({others})" if self.statuses.total() > self.statuses[200] else ""
        )


def request(method: str, path: str, body: bytes = b"", key: str | None = None) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    lines += ["Content-Type: application/json"] + ([f"X-API-Key: {key}"] if key else [])
    return "\r\n".join([*lines, "", ""]).encode() + body


def asked(texts: list[str]) -> bytes:
    return json.dumps({"texts": texts, "source": "en", "target": "de"}).encode()


async def answer(reader: asyncio.StreamReader) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    await reader.readexactly(int(length[1]) if length else 0)
    return int(head.split()[1])


async def once(port: int, sent: bytes, seen: Seen) -> None:
    begun = time.perf_counter()
    try:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await connect(port)
            try:
                writer.write(sent)
                seen.statuses[await answer(reader)] += 1
            finally:
                writer.close()
    except (OSError, TimeoutError, EOFError):
        seen.statuses[0] += 1
    seen.worst_s = max(seen.worst_s, time.perf_counter() - begun)


async def watch(port: int, make: Callable[[], bytes], until: asyncio.Event) -> Seen:
    seen = Seen()
    while not until.is_set():
        await once(port, make(), seen)
        await asyncio.sleep(PAUSE_S)
    return seen


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
