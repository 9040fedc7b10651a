"""What a client with a key can do to the others: large glossaries, explanations, long documents, and
results that nobody reads. The server has to serve a run, since an export explains nothing."""

import asyncio
import contextlib
import itertools
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import cast

from attacks import GREEDY, Attack, Seen, request
from clients import connect

PATIENCE_S = 60.0


def terms(count: int, first: int = 0) -> str:
    return "\n".join(f"term{number:06}\tname" for number in range(first, first + count))


async def ask(port: int, sent: bytes) -> tuple[int, bytes]:
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await connect(port)
        try:
            writer.write(sent)
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            return int(head.split()[1]), await reader.readexactly(int(length[1]) if length else 0)
        finally:
            writer.close()


def again_and_again(make: Callable[[], bytes]) -> Attack:
    """One request after the other on new connections."""

    async def attack(port: int, seconds: float) -> str:
        seen, until, largest = Seen(), time.perf_counter() + seconds, 0
        while time.perf_counter() < until:
            status, body = await ask(port, make())
            seen.statuses[status] += 1
            largest = max(largest, len(body))
        return f"{seen}, largest answer {largest / 1e6:.2f} MB"

    return attack


def large_glossary() -> bytes:
    body = {"name": "g", "source_lang": "en", "target_lang": "de", "entries": terms(90_000)}
    return request("POST", "/v2/glossaries", json.dumps(body).encode(), GREEDY)


async def growing_glossary(port: int, seconds: float) -> str:
    """5,000 more terms with every PATCH."""
    until, seen, first = time.perf_counter() + seconds, Seen(), 0

    def dictionaries(count: int) -> bytes:
        one = {"source_lang": "en", "target_lang": "de", "entries": terms(count, first)}
        return json.dumps({"name": "g", "dictionaries": [one]}).encode()

    _, body = await ask(port, request("POST", "/v3/glossaries", dictionaries(5000), GREEDY))
    own = f"/v3/glossaries/{json.loads(body)['glossary_id']}"
    while time.perf_counter() < until:
        first += 5000
        status, _ = await ask(port, request("PATCH", own, dictionaries(5000), GREEDY))
        seen.statuses[status] += 1
    _, body = await ask(port, request("GET", own, key=GREEDY))
    return f"{seen}, {json.loads(body)['dictionaries'][0]['entry_count']:,} terms in the end"


def explanations(texts: Iterator[str]) -> Callable[[], bytes]:
    def make() -> bytes:
        body = {"text": next(texts), "source": "en", "target": "de"}
        return request("POST", "/api/v1/explain", json.dumps(body).encode(), GREEDY)

    return make


def upload(path: str, name: str, content: bytes) -> bytes:
    fields = {"source": "en", "target": "de", "source_lang": "EN", "target_lang": "DE"}
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{fields[key]}\r\n' for key in fields
    ]
    last = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    body = "".join([*parts, last]).encode() + content + b"\r\n--x--\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {GREEDY}\r\n"
    head += f"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def abandoned_documents(port: int, seconds: float) -> str:
    """Eight documents of half a megabyte at a time, whose clients leave at once."""
    sent, until = 0, time.perf_counter() + seconds
    bomb = upload("/translate_file", "x.md", b"***bold** " * 50_000)

    async def one() -> None:
        nonlocal sent
        while time.perf_counter() < until:
            with contextlib.suppress(OSError, TimeoutError):
                _, writer = await connect(port)
                writer.write(bomb)
                await asyncio.wait_for(writer.drain(), 10)
                await asyncio.sleep(0.5)
                writer.close()
                sent += 1

    await asyncio.gather(*(one() for _ in range(8)))
    small, begun = upload("/translate_file", "a.md", b"The end.\n"), time.perf_counter()
    status, _ = await ask(port, small)
    return f"{sent} documents; one of a line then: {status} after {time.perf_counter() - begun:.1f} s"


async def unread_results(port: int, seconds: float) -> str:
    """160 downloads of a result of 14 MB, none of which is read."""
    content = b"<p>The end.</p><script>" + b"x" * (14 << 20) + b"</script>"
    status, body = await ask(port, upload("/translate_file", "a.html", content))
    if status != 200:
        return f"the document is refused: {status}"
    path = "/" + json.loads(body)["translatedFileUrl"].split("/", 3)[3]
    writers = []
    for _ in range(160):
        with contextlib.suppress(OSError, TimeoutError):
            _, writer = await connect(port)
            cast(asyncio.Transport, writer.transport).pause_reading()
            writer.write(request("GET", path, key=GREEDY))
            writers.append(writer)
    await asyncio.sleep(seconds)
    for writer in writers:
        writer.close()
    return f"{len(writers)} downloads of {len(content) >> 20} MiB, unread"


WITH_KEY: dict[str, Attack] = {
    "a glossary of 90,000 terms, with a key": again_and_again(large_glossary),
    "a glossary that grows, with a key": growing_glossary,
    "explanations of 1,000 foreign letters, with a key": again_and_again(
        explanations(f"{'㐀㐁㐂㐃㐄' * 199}{number:05}" for number in itertools.count())
    ),
    "explanations of 100 letters, with a key": again_and_again(
        explanations(f"{'the old cat ' * 8}{number:04}" for number in itertools.count())
    ),
    "documents of `***bold** `, abandoned, with a key": abandoned_documents,
    "results that nobody reads, with a key": unread_results,
}
