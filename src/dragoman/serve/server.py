"""Accepts connections, within limits, until it is stopped; then finishes the requests in progress."""

import asyncio
import contextlib
import errno
import logging
import socket

from starlette.types import Message

from dragoman.serve.connections import SAID_EVERY_S, Connections
from dragoman.serve.gate import Gate
from dragoman.serve.limits import Limits
from dragoman.serve.protocol import Connection, ProtocolWiring
from dragoman.serve.seldom import Seldom

log = logging.getLogger("dragoman.serve")

_ACCEPTED_A_TURN = 16
_AGAIN_S = 0.1
"""Seconds without accepting connections after the system ran out of file descriptors."""
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Server:
    """A server. `run` serves until `stop` is called, from any thread. A second call does not wait for open
    requests."""

    def __init__(self, gate: Gate, limits: Limits, most_connections: int | None = None) -> None:
        self._gate, self._limits = gate, limits
        self._most = most_connections or limits.connections
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = 0
        self.serving = False

    async def run(self, listening: socket.socket) -> int:
        """Serve until stopped. Returns the number of requests that were cut off at the end."""
        self._loop = asyncio.get_running_loop()
        self._stopping, self._hurry = asyncio.Event(), asyncio.Event()
        self.connections = Connections(self._most, self._gate.metrics)
        self._wiring = ProtocolWiring(self._gate, self._limits, self.connections)
        self._out_of_files = Seldom("no file descriptor for a connection, %d times", SAID_EVERY_S)
        self._opening: set[asyncio.Task[None]] = set()
        self._listening = listening
        listening.setblocking(False)
        async with _Lifespan(self._gate):
            self._listen()
            self.serving = True
            self._told()
            await self._stopping.wait()
            return await self._drain()

    def stop(self) -> None:
        self._stopped += 1
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._told)

    def _told(self) -> None:
        if self._stopped:
            self._stopping.set()
        if self._stopped > 1:
            self._hurry.set()

    def _listen(self) -> None:
        if not self.connections.draining:
            asyncio.get_running_loop().add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        """Accept a few connections. The others wait in the queue of the system."""
        loop, connections = asyncio.get_running_loop(), self.connections
        for _ in range(_ACCEPTED_A_TURN):
            if connections.busy >= connections.most:
                loop.remove_reader(self._listening)
                connections.when_room(self._listen)
                return
            try:
                self._open(self._listening.accept()[0])
                if len(connections) + connections.opening > connections.most:
                    connections.make_room()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_FILES:
                    raise
                self._out_of_files.note()
                for _ in range(_ACCEPTED_A_TURN):
                    connections.make_room()
                loop.remove_reader(self._listening)
                loop.call_later(_AGAIN_S, self._listen)
                return

    def _open(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connections.opening += 1
        loop = asyncio.get_running_loop()
        task = loop.create_task(_opened(loop, self._wiring, connection))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _drain(self) -> int:
        """Finish. Connections in the queue of the system are still accepted, then the port is closed."""
        self.connections.draining = True
        asyncio.get_running_loop().remove_reader(self._listening)
        with contextlib.suppress(OSError):
            while True:
                self._open(self._listening.accept()[0])
        self._listening.close()
        await asyncio.gather(*self._opening)
        for one in self.connections:
            one.drain()
        ends = [asyncio.ensure_future(one.wait()) for one in (self.connections.none_left, self._hurry)]
        await asyncio.wait(ends, timeout=self._limits.drain_s, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        unanswered = [task for task in self._wiring.tasks if not task.done()]
        for one in self.connections:
            one.abort()
        for task in unanswered:
            task.cancel()
        await asyncio.gather(*unanswered, return_exceptions=True)
        return len(unanswered)


async def _opened(loop: asyncio.AbstractEventLoop, wiring: ProtocolWiring, connection: socket.socket) -> None:
    try:
        await loop.connect_accepted_socket(lambda: Connection(wiring), connection)
    except OSError:  # it is already closed
        wiring.connections.opening -= 1
        connection.close()


class _Lifespan:
    """Starts and ends the application's lifespan, which runs in its own task."""

    def __init__(self, app: Gate) -> None:
        self._app = app
        self._asked: asyncio.Queue[Message] = asyncio.Queue()
        self._told: asyncio.Queue[Message] = asyncio.Queue()

    async def __aenter__(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}}
        self._task = asyncio.create_task(self._app(scope, self._asked.get, self._told.put))
        await self._ask("startup")

    async def __aexit__(self, *_: object) -> None:
        await self._ask("shutdown")
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _ask(self, what: str) -> None:
        await self._asked.put({"type": f"lifespan.{what}"})
        told = asyncio.ensure_future(self._told.get())
        await asyncio.wait({told, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if not told.done():
            told.cancel()
            await self._task  # raises its exception, if there is one
        elif told.result()["type"].endswith("failed"):
            raise RuntimeError(f"{what} failed: {told.result().get('message', '')}")
