"""A client that asks again and again while a server is under attack, and what it was answered."""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from clients import connect

PATIENCE_S = 10.0
PAUSE_S = 0.1


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
