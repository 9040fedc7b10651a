"""No request is lost where a connection is closed, or a worker goes, in the moment that it comes."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
import uvicorn
from uvicorn.server import ServerState

from dragoman.serve.app import build
from dragoman.serve.batcher import Kindred
from dragoman.serve.limits import Limits
from dragoman.serve.protocol import protocol_of
from dragoman.serve.run import listen
from dragoman.serve.service import Service
from serve.standin import service_of, shouter

BODY = b'{"q": "hello", "source": "en", "target": "de"}'
HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
REQUEST = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


@contextlib.asynccontextmanager
async def connected(service: Service) -> AsyncIterator[tuple[socket.socket, ServerState]]:
    """A client of a server in the same event loop, so that the order of things is known."""
    loop = asyncio.get_running_loop()
    gate, state = build(service), ServerState()
    config = uvicorn.Config(gate, http=protocol_of(service.limits, gate), lifespan="off", log_config=None)
    config.load()
    kind = config.http_protocol_class
    listening = listen("127.0.0.1", 0)
    server = await loop.create_server(lambda: kind(config, state, {}), sock=listening)
    client = socket.socket()
    client.setblocking(False)
    try:
        await loop.sock_connect(client, listening.getsockname())
        yield client, state
    finally:
        client.close()
        server.close()


async def received(client: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(10):
        return await loop.sock_recv(client, 4096)


def test_an_idle_connection_is_not_closed_while_a_request_comes_on_it() -> None:
    """At ten times its capacity the server lost two of 6,197 requests in this way."""

    async def story() -> None:
        async with connected(service_of()) as (client, state):
            client.send(REQUEST)
            assert (await received(client)).startswith(b"HTTP/1.1 200")
            (own,) = state.connections
            client.send(REQUEST)  # the system has it, the event loop does not know yet
            own.timeout_keep_alive_handler()  # type: ignore[union-attr]
            assert b"HELLO" in await received(client)
            own.timeout_keep_alive_handler()  # type: ignore[union-attr]
            assert await received(client) == b""

    asyncio.run(story())


def test_idle_connections_stay_for_a_time() -> None:
    async def story() -> None:
        async with connected(service_of(limits=Limits(idle_s=0.2))) as (client, _):
            loop = asyncio.get_running_loop()
            client.send(REQUEST)
            await received(client)
            begun = loop.time()
            assert await received(client) == b"" and loop.time() - begun > 0.15

    asyncio.run(story())


def test_a_refused_body_that_comes_late_is_no_slow_request() -> None:
    """The rest of what was refused leaves the connection idle; it does not begin a request."""
    service = service_of(limits=Limits(requests=1, receive_s=0.2))
    shouter(service).go_on.clear()

    async def story() -> None:
        async with connected(service) as (client, state):
            other = socket.create_connection(client.getpeername())
            other.sendall(REQUEST)
            while not service.metrics.value("dragoman_batches_total"):
                await asyncio.sleep(0.005)
            client.send(REQUEST[:-9])
            assert (await received(client)).startswith(b"HTTP/1.1 503")
            client.send(REQUEST[-9:])
            await asyncio.sleep(0.3)
            assert len(state.connections) == 2
            shouter(service).go_on.set()
            while service.metrics.value("dragoman_requests_total") < 2:
                await asyncio.sleep(0.005)
            client.send(REQUEST)
            assert (await received(client)).startswith(b"HTTP/1.1 200")
            other.close()

    asyncio.run(story())


@pytest.mark.parametrize(("full", "method"), [(False, b"POST"), (True, b"POST"), (False, b"HEAD")])
def test_rubbish_after_a_head_has_one_answer_and_no_traceback(
    full: bool, method: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The application has been called when the body breaks off; if it has answered, that is the answer."""
    service = service_of(limits=Limits(requests=1, window_s=0))
    shouter(service).go_on.clear()

    async def story() -> None:
        async with connected(service) as (client, state):
            if full:  # then a request is refused before its body is there
                other = socket.create_connection(client.getpeername())
                other.sendall(REQUEST)
                while not service.metrics.value("dragoman_batches_total"):
                    await asyncio.sleep(0.005)
            client.send(HEAD.replace(b"POST", method) + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
            await asyncio.sleep(0.05)
            client.send(b"zz\r\n")
            told = await received(client)
            while part := await received(client):
                told += part
            assert (
                told.startswith(b"HTTP/1.1 503" if full else b"HTTP/1.1 400") and told.count(b"HTTP/1.1") == 1
            )
            shouter(service).go_on.set()
            while len(state.connections) > full:
                await asyncio.sleep(0.005)

    with caplog.at_level("INFO"):
        asyncio.run(story())
    assert not [one for one in caplog.records if one.exc_info or one.levelname == "ERROR"]


@pytest.mark.parametrize("workers", [1, 2])
def test_who_asks_when_the_last_worker_has_just_gone_has_a_worker(workers: int) -> None:
    service = service_of(limits=Limits(window_s=0), workers=workers)
    batcher = service.batchers["en", "de"]

    async def story() -> None:
        first = asyncio.ensure_future(batcher.ask(["one"], Kindred()))
        while not batcher.waiting:
            await asyncio.sleep(0)
        await batcher._queue[0].future  # goes on before anything that the worker's end sets off
        async with asyncio.timeout(5):
            (answer,) = await batcher.ask(["two"], Kindred())
        assert answer.texts == ("TWO",)
        await first

    asyncio.run(story())
    service.close()
