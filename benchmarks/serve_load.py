"""A server under load: ours beside FastAPI with CTranslate2 by hand, at up to ten times what it can do.

    dragoman export RUN --out EXPORT
    python benchmarks/serve_load.py EXPORT sentences.txt

Each server is a process of its own on this machine. First its capacity: 32 clients that always wait for an
answer before they ask again. Then requests come at 1, 2, 5 and 10 times that rate, whether or not there are
answers. Every sentence is asked once, so nothing can be remembered, and afterwards every answer is held
against what the translator says alone.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from common import write_table
from dragoman.data.formats import read_lines
from dragoman.engines.ctranslate2 import Translator

CLIENTS = 32
PLAIN = """
import sys
import uvicorn
from fastapi import FastAPI, Request
from dragoman.engines.ctranslate2 import Translator
translator, app = Translator.open(sys.argv[1]), FastAPI()
def work(text): return translator.translate([text])[0]
@app.post("/translate")
async def translate(request: Request):
    from starlette.concurrency import run_in_threadpool
    return {"translatedText": await run_in_threadpool(work, (await request.json())["q"])}
uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
"""


@dataclass
class Load:
    """What became of the requests."""

    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)

    def time_at(self, share: float) -> float:
        return sorted(self.times)[int(share * (len(self.times) - 1))] if self.times else float("nan")


Result = tuple[str, str, Load, float, float]
"""Server, load, what became of it, capacity, growth in MiB."""


class Connections:
    """Connections that are used again; as many as there are requests under way."""

    def __init__(self, port: int) -> None:
        self._port, self._free = port, list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]()

    async def ask(self, text: str) -> tuple[int, str]:
        body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
        head = f"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
        while self._free and self._free[-1][0].at_eof():  # closed by the server after a time without use
            self._free.pop()[1].close()
        reader, writer = self._free.pop() if self._free else await self._open()
        writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        content = json.loads(await reader.readexactly(length))
        self._free.append((reader, writer))
        return int(answer.split()[1]), content.get("translatedText", "")

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port)

    def close(self) -> None:
        for _, writer in self._free:
            writer.close()


class Asker:
    def __init__(self, port: int) -> None:
        self.connections = Connections(port)

    async def one(self, text: str, load: Load) -> None:
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(60):
                status, translation = await self.connections.ask(text)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            load.statuses[0] += 1
            return
        load.statuses[status] += 1
        if status == 200:
            load.times.append(time.perf_counter() - begun)
            load.answers[text] = translation

    async def closed(self, texts: Iterator[str], seconds: float) -> Load:
        """Clients that wait for their answers."""
        load, begun = Load(), time.perf_counter()

        async def client() -> None:
            while time.perf_counter() - begun < seconds:
                await self.one(next(texts), load)

        await asyncio.gather(*(client() for _ in range(CLIENTS)))
        load.seconds = time.perf_counter() - begun
        return load

    async def open(self, texts: Iterator[str], rate: float, seconds: float) -> Load:
        """Requests at random moments, at this rate."""
        load, begun, chance = Load(), time.perf_counter(), random.Random(1)
        tasks: list[asyncio.Task[None]] = []
        due = 0.0
        while due < seconds:
            due += chance.expovariate(rate)
            await asyncio.sleep(max(0.0, due - (time.perf_counter() - begun)))
            tasks.append(asyncio.create_task(self.one(next(texts), load)))
        await asyncio.gather(*tasks)
        load.seconds = time.perf_counter() - begun
        return load


def resident(process: int) -> float:
    """MiB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


@contextlib.asynccontextmanager
async def server(command: list[str], port: int) -> AsyncIterator[int]:
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(200):
                await asyncio.sleep(0.1)
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
            yield process.pid
        finally:
            process.terminate()


async def measure(
    name: str, command: list[str], port: int, texts: Iterator[str], seconds: float
) -> list[Result]:
    results: list[Result] = []
    async with server(command, port) as process:
        asker = Asker(port)
        await asker.closed(texts, 2)  # warm
        load = await asker.closed(texts, seconds)
        capacity, before = load.statuses[200] / load.seconds, resident(process)
        results.append((name, f"{CLIENTS} clients", load, capacity, 0.0))
        for times in (1, 2, 5, 10):
            load = await asker.open(texts, times * capacity, seconds)
            results.append((name, f"{times}×", load, capacity, resident(process) - before))
            print(name, times, dict(load.statuses), flush=True)
        asker.connections.close()
    return results


def row(translator: Translator, name: str, what: str, load: Load, capacity: float, grown: float) -> list[str]:
    alone = translator.translate(list(load.answers))
    wrong = sum(found != own for found, own in zip(load.answers.values(), alone, strict=True))
    good, refused = load.statuses[200], load.statuses[429] + load.statuses[503]
    rate = good / load.seconds
    others = sum(load.statuses.values()) - good - refused
    numbers = [f"{rate:.0f}", f"{100 * rate / capacity:.0f}%", str(refused), str(others), str(wrong)]
    latencies = [f"{1000 * load.time_at(share):.0f}" for share in (0.5, 0.95)]
    return [name, what, *numbers, *latencies, f"{grown:+.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("export", type=Path)
    parser.add_argument("sentences", help="A file with many thousands of them, one a line.")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--port", type=int, default=5151)
    arguments = parser.parse_args()
    texts = list(dict.fromkeys(line for line in read_lines(arguments.sentences) if line.strip()))
    random.Random(0).shuffle(texts)
    texts = [text for text in texts if not set(text[:-1]) & set(".!?…")]
    port, export = arguments.port, str(arguments.export)
    ours = [sys.executable, "-m", "dragoman", "serve", export, "--port", str(port)]
    plain = [sys.executable, "-c", PLAIN, export, str(port + 1)]
    left = iter(texts)
    results = asyncio.run(measure("dragoman", ours, port, left, arguments.seconds))
    results += asyncio.run(measure("FastAPI by hand", plain, port + 1, left, arguments.seconds))
    translator = Translator.open(arguments.export)
    head = [
        "server",
        "load",
        "answers/s",
        "of capacity",
        "refused",
        "lost",
        "wrong",
        "p50 ms",
        "p95 ms",
        "MiB",
    ]
    write_table(
        "serve_load",
        "A server under load",
        head,
        [row(translator, *result) for result in results],
        f"{arguments.seconds:g} s each, one sentence a request. «lost» got neither answer nor refusal within"
        " 60 s; «wrong» differs from what the translator says alone; «MiB» is what the server grew by. The"
        " load comes from the same machine.",
    )


if __name__ == "__main__":
    main()
