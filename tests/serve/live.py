"""A server in the event loop of the test, with plain sockets and a clock that goes only when it is told."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

from dragoman.serve.app import Options, build
from dragoman.serve.connections import Connections, ConnectionStage
from dragoman.serve.gate import Gate
from dragoman.serve.limits import Limits
from dragoman.serve.models import Models
from dragoman.serve.run import listen
from dragoman.serve.server import Server
from dragoman.serve.service import Service
from serve.standin import ALL

BODY = b'{"q": "hello", "source": "en", "target": "de"}'
HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
NEVER_S = 300.0
"""A test that waits for what never comes fails after this. No test is shown to be right by it."""


def request(body: bytes = BODY, *headers: bytes) -> bytes:
    return HEAD + b"".join(one + b"\r\n" for one in (*headers, b"Content-Length: %d" % len(body), b"")) + body


REQUEST = request()


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose time stands still. Sockets are real: what is sent comes, however long it takes."""

    def __init__(self) -> None:
        self.now = 1000.0
        super().__init__()

    def time(self) -> float:
        return self.now


def advance(seconds: float) -> None:
    """What is to happen within that time happens in the next turn of the event loop."""
    clock = asyncio.get_running_loop()
    assert isinstance(clock, Clock)
    clock.now += seconds


def on_a_still_clock(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=Clock) as runner:
        task: list[asyncio.Task[Any]] = []

        async def watched() -> None:
            task.append(asyncio.current_task())  # type: ignore[arg-type]
            await story()

        guard = threading.Timer(NEVER_S, lambda: runner.get_loop().call_soon_threadsafe(task[0].cancel))
        guard.daemon = True
        guard.start()
        try:
            runner.run(watched())
        finally:
            guard.cancel()


async def until(condition: Callable[[], object]) -> None:
    """Until it is so. Threads and the system get time for their part, whatever the clock says."""
    while not condition():
        await asyncio.to_thread(time.sleep, 0.001)


async def turns(count: int = 10) -> None:
    """Of the event loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Client:
    """A plain socket."""

    def __init__(self, port: int) -> None:
        self.port, self.socket = port, socket.socket()
        self.socket.setblocking(False)
        self._unread = b""

    async def connect(self) -> "Client":
        await asyncio.get_running_loop().sock_connect(self.socket, ("127.0.0.1", self.port))
        return self

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.socket, data)

    async def receive(self) -> bytes:
        """What has come; nothing where the connection was closed."""
        if self._unread:
            found, self._unread = self._unread, b""
            return found
        try:
            return await asyncio.get_running_loop().sock_recv(self.socket, 1 << 16)
        except ConnectionResetError:
            return b""

    async def answer(self) -> tuple[int, bytes, bytes]:
        """Status, head and body of one answer; 0 where there is none."""
        found = b""
        while b"\r\n\r\n" not in found:
            if not (part := await self.receive()):
                return 0, found, b""
            found += part
        head, _, rest = found.partition(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 100"):
            self._unread = rest
            return await self.answer()
        length, body = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]), bytearray(rest)
        while len(body) < length and (part := await self.receive()):
            body += part
        self._unread = bytes(body[length:])
        return int(head.split()[1]), head, bytes(body[:length])

    async def ask(self, data: bytes = REQUEST) -> int:
        await self.send(data)
        return (await self.answer())[0]

    async def rest(self) -> bytes:
        """All that comes until the connection is closed."""
        found = bytearray()
        while part := await self.receive():
            found += part
        return bytes(found)

    def close(self) -> None:
        self.socket.close()


class Running:
    """A server and its clients."""

    def __init__(self, server: Server, gate: Gate, port: int) -> None:
        self.server, self.gate, self.port = server, gate, port
        self._clients: list[Client] = []

    @property
    def connections(self) -> Connections:
        return self.server.connections

    def at(self, stage: ConnectionStage) -> int:
        """How many connections are at this stage."""
        return sum(self.connections.stage(one) is stage for one in self.connections)

    async def client(self) -> Client:
        self._clients.append(Client(self.port))
        return await self._clients[-1].connect()

    async def clients(self, count: int, sent: bytes = b"") -> list[Client]:
        """One after the other, so that it is known which is the oldest."""
        return [await self._sent(sent) for _ in range(count)]

    async def _sent(self, sent: bytes) -> Client:
        client = await self.client()
        await client.send(sent)
        return client

    def close(self) -> None:
        for client in self._clients:
            client.close()


@contextlib.asynccontextmanager
async def serving(service: Service, options: Options | None = None) -> AsyncIterator[Running]:
    async with serving_gate(build(service, options), service.limits) as found:
        yield found


@contextlib.asynccontextmanager
async def serving_gate(gate: Gate, limits: Limits) -> AsyncIterator[Running]:
    listening = listen("127.0.0.1", 0)
    server = Server(gate, limits)
    running = Running(server, gate, listening.getsockname()[1])
    task = asyncio.ensure_future(server.run(listening))
    await until(lambda: server.serving or task.done())
    try:
        yield running
    finally:
        running.close()
        for one in ALL:
            one.go_on.set()
        server.stop()
        server.stop()
        await task


@contextlib.contextmanager
def in_a_thread(
    service: Service | None, options: Options | None = None, models: Models | None = None
) -> Iterator[str]:
    """The address of a server with an event loop and a thread of its own, for clients that block."""
    gate = build(service, options, models)
    server = Server(gate, gate.limits)
    listening = listen("127.0.0.1", 0)
    thread = threading.Thread(target=lambda: asyncio.run(server.run(listening)))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    finally:
        server.stop()
        thread.join()
