"""Clients of a server on this machine: patient ones, a crowd, slow ones, and those that wait when it ends."""

import asyncio
import contextlib
import json
import random
import select
import signal
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

CLIENTS = 32
PATIENCE_S = 60
_HEAD = (
    "POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    "Content-Length: {}\r\n\r\n"
)
_TRICKLE_S = 0.5


@dataclass
class Load:
    """What became of the requests."""

    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    """For every request with neither answer nor refusal, what happened to it."""

    def time_at(self, share: float) -> float:
        return sorted(self.times)[int(share * (len(self.times) - 1))] if self.times else float("nan")


@dataclass
class Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    opened: float = field(default_factory=time.perf_counter)
    used: int = 0
    idle_since: float = 0.0

    @property
    def closed(self) -> bool:
        """By the server. The socket is asked, as urllib3 and httpx do: the event loop learns of it later."""
        number = self.writer.get_extra_info("socket").fileno()
        return self.reader.at_eof() or number < 0 or _readable(number)


class Connections:
    """Connections that are used again; as many as there are requests under way."""

    def __init__(self, port: int, kept: bool = True) -> None:
        self._port, self._kept, self._free = port, kept, list[Connection]()

    async def take(self) -> Connection:
        while self._free and self._free[-1].closed:
            self._free.pop().writer.close()
        if self._free:
            return self._free.pop()
        return Connection(*await connect(self._port))

    async def ask(self, text: str, connection: Connection) -> tuple[int, str]:
        body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
        connection.writer.write(_HEAD.format(len(body)).encode() + body)
        answer = await connection.reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        content = json.loads(await connection.reader.readexactly(length))
        connection.used, connection.idle_since = connection.used + 1, time.perf_counter()
        if self._kept:
            self._free.append(connection)
        else:
            connection.writer.close()
        return int(answer.split()[1]), content.get("translatedText", "")

    def close(self) -> None:
        for connection in self._free:
            connection.writer.close()


class Asker:
    """With `kept=False` every request has a connection of its own."""

    def __init__(self, port: int, kept: bool = True) -> None:
        self.connections = Connections(port, kept)

    async def one(self, text: str, load: Load) -> None:
        begun, connection = time.perf_counter(), None
        try:
            async with asyncio.timeout(PATIENCE_S):
                connection = await self.connections.take()
                status, translation = await self.connections.ask(text, connection)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            load.statuses[0] += 1
            load.lost.append(_told(error, connection, begun))
            return
        load.statuses[status] += 1
        if status == 200:
            load.times.append(time.perf_counter() - begun)
            load.answers[text] = translation
        elif status not in (429, 503):
            load.lost.append(_told(f"status {status}", connection, begun))

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


def _readable(number: int) -> bool:
    """An end is there to be read, too. `select.select` knows no descriptors above 1,023."""
    waiting = select.poll()
    waiting.register(number, select.POLLIN)
    return bool(waiting.poll(0))


def _told(what: Exception | str, connection: Connection | None, begun: float) -> str:
    """What became of a request that was lost, and of its connection."""
    took = f"after {time.perf_counter() - begun:.3f} s"
    if isinstance(what, Exception):
        what = f"{type(what).__name__} ({what})"
    if connection is None:
        return f"{what} {took}, while connecting"
    age = f"connection {begun - connection.opened:.3f} s old"
    if not connection.used:
        return f"{what} {took}, {age}, new"
    return f"{what} {took}, {age}, used {connection.used} times, idle {begun - connection.idle_since:.4f} s"


async def slow(port: int, count: int, longest: float) -> list[float]:
    """Clients that send a byte of a request now and then: after how many seconds each was sent away."""

    async def one(number: int) -> float:
        request = _HEAD.format(9).encode() + b"123456789"
        begun = time.perf_counter()
        reader, writer = await connect(port)
        at = len(request) - 5 if number % 2 else 1  # half of them are slow with the body
        writer.write(request[:at])
        gone = asyncio.ensure_future(reader.read())
        while not gone.done() and time.perf_counter() - begun < longest:
            await asyncio.wait({gone}, timeout=_TRICKLE_S)
            with contextlib.suppress(OSError):
                writer.write(request[at : at + 1] if at < len(request) - 1 else b"")
            at += 1
        seconds = time.perf_counter() - begun if gone.done() else float("inf")
        gone.cancel()
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await gone
        writer.close()
        return seconds

    return await asyncio.gather(*(one(number) for number in range(count)))


async def drained(process: subprocess.Popen[bytes], port: int, texts: Iterator[str], count: int) -> Load:
    """Requests that are in work when the server is told to end."""
    asker, load = Asker(port), Load()
    tasks = [asyncio.create_task(asker.one(next(texts), load)) for _ in range(count)]
    await asyncio.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    await asyncio.gather(*tasks)
    asker.connections.close()
    return load


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port)


@contextlib.asynccontextmanager
async def server(command: list[str], port: int) -> AsyncIterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(200):
                await asyncio.sleep(0.1)
                with contextlib.suppress(OSError):
                    _, writer = await connect(port)
                    writer.close()
                    break
            yield process
        finally:
            process.terminate()
