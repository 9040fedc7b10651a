"""What anybody who reaches the port can do to the others: with slow bodies, tiny chunks, many connections,
large bodies and large heads. Nothing here depends on how fast anything is."""

import asyncio
import logging
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.serve import protocol
from dragoman.serve.app import Options
from dragoman.serve.connections import SAID_EVERY_S, ConnectionStage
from dragoman.serve.incoming import Incoming
from dragoman.serve.keys import Keys
from dragoman.serve.limits import Limits
from dragoman.serve.run import connections_possible
from serve.live import (
    HEAD,
    HEALTH,
    REQUEST,
    Client,
    advance,
    on_a_still_clock,
    request,
    serving,
    turns,
    until,
)
from serve.standin import service_of, shouter

KEY = "the-key-of-a-healthy-client"
LOCKED = Options(keys=Keys([KEY]))
LIMITS = Limits(window_s=0)
WITH_KEY = request(REQUEST.partition(b"\r\n\r\n")[2], b"X-API-Key: " + KEY.encode())
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("path", [b"/v2/document", b"/api/v1/translate", b"/"])
def test_slow_bodies_keep_nobody_out(path: bytes) -> None:
    async def story() -> None:
        async with serving(service_of(limits=LIMITS), LOCKED) as server:
            head = HEAD.replace(b"/translate", path) + b"Content-Length: 900\r\n\r\nx"
            slow = await server.clients(260, head)
            await until(lambda: server.gate.bodies.coming == LIMITS.bodies_per_client)
            assert server.gate.places.taken == 0
            healthy = await server.client()
            for _ in range(5):
                assert await healthy.ask(WITH_KEY) == 200
                for client in slow[-LIMITS.bodies_per_client :]:  # the first ones have been sent away
                    await client.send(b"x")
            first, last = slow[0], slow[-1]
            status, answered, _ = await first.answer()
            assert status == 503 and b"retry-after: 1" in answered
            advance(6 * LIMITS.receive_s)
            assert (await last.answer())[0] == 408

    on_a_still_clock(story)


def test_a_wrong_key_in_a_header_is_refused_before_the_body_comes() -> None:
    async def story() -> None:
        async with serving(service_of(limits=LIMITS), LOCKED) as server:
            client = await server.client()
            for header in (b"X-API-Key: wrong", b"Authorization: DeepL-Auth-Key wrong"):
                assert await client.ask(HEAD + header + b"\r\nContent-Length: 9\r\n\r\n") == 403
                await client.send(b"123456789")
            large = HEAD + b"X-API-Key: wrong\r\nContent-Length: 999999\r\n\r\n"
            assert await client.ask(large) == 403 and await client.rest() == b""
            assert server.gate.bodies.bytes == 0

    on_a_still_clock(story)


def test_bodies_with_a_key_do_not_make_room_for_bodies_without() -> None:
    limits = Limits(window_s=0, bodies=2, bodies_per_client=2)

    async def story() -> None:
        async with serving(service_of(limits=limits), LOCKED) as server:
            (known,) = await server.clients(1, WITH_KEY[:-1])
            await until(lambda: server.gate.bodies.coming == 1)
            others = await server.clients(5, REQUEST[:-1])
            assert [(await client.answer())[0] for client in others[:3]] == [503] * 3
            assert server.gate.bodies.coming == 3
            assert await known.ask(WITH_KEY[-1:]) == 200

    on_a_still_clock(story)


def test_memory_for_bodies_is_limited_in_sum() -> None:
    limits = Limits(window_s=0, memory_bytes=100_000)

    def body(size: int, *headers: bytes) -> bytes:
        return request(b'{"q": "' + b"a" * size + b'", "source": "en", "target": "de"}', *headers)

    async def story() -> None:
        async with serving(service_of(limits=limits), LOCKED) as server:
            bodies, key = server.gate.bodies, b"X-API-Key: " + KEY.encode()
            held = await server.clients(1, body(30_000)[:-1])
            await until(lambda: bodies.bytes > 30_000)
            held += await server.clients(2, body(30_000)[:-1])
            await until(lambda: bodies.bytes > 90_000)
            healthy = await server.client()
            assert await healthy.ask(body(4000, key)) == 200 and bodies.coming == 3  # there is room
            assert await healthy.ask(body(20_000, key)) == 413  # too long a text; for its body there was room
            status, head, _ = await held[0].answer()
            assert status == 503 and b"retry-after: 1" in head and bodies.coming == 2
            known: list[Client] = []
            for _ in range(2):
                known += await server.clients(1, body(40_000, key)[:-1])
                await until(lambda: bodies.bytes > 100_000 - 31_000)
            assert [(await client.answer())[0] for client in held[1:]] == [503, 503]
            await until(lambda: bodies.bytes > 80_000)
            assert (
                await (await server.client()).ask(body(40_000, key)) == 503
            )  # all others have a key as well
            for client in known:
                assert await client.ask(b"}") == 413
            await until(lambda: not bodies.bytes)

    on_a_still_clock(story)


def test_tiny_chunks_are_handled_a_few_at_a_time_and_then_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is counted is pieces of HTTP in one turn of the event loop, which is what others wait for."""
    found = [0]
    own = Incoming.next_event

    def counted(incoming: Incoming) -> object:
        found[-1] += 1
        return own(incoming)

    async def count_turns() -> None:
        while True:
            await asyncio.sleep(0)
            found.append(0)

    monkeypatch.setattr(Incoming, "next_event", counted)

    async def story() -> None:
        async with serving(service_of(limits=LIMITS)) as server:
            counting = asyncio.ensure_future(count_turns())
            client = await server.client()
            await client.send(CHUNKED + b"1\r\na\r\n" * 20_000)
            status, _, told = await client.answer()
            assert status == 400 and b"too many small chunks" in told
            counting.cancel()

    on_a_still_clock(story)
    assert 250 < sum(found) < 1000 and max(found) <= protocol.EVENTS_A_TURN


def test_chunks_of_a_sensible_size_are_taken() -> None:
    body = REQUEST.partition(b"\r\n\r\n")[2]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:5], body[5:])) + b"0\r\n\r\n"
    large = b"400\r\n" + b" " * 1024 + b"\r\n"

    async def story() -> None:
        async with serving(service_of(limits=LIMITS)) as server:
            client = await server.client()
            assert await client.ask(CHUNKED + chunks) == 200
            assert await client.ask(CHUNKED + large * 900 + chunks) == 200
            assert (
                await client.ask(CHUNKED + b"1;" + b"e" * 9000 + b"\r\na\r\n" + b"0\r\n\r\n") == 400
            )  # no JSON
            await client.send(CHUNKED + (b"1;" + b"e" * 9000 + b"\r\na\r\n") * 20)
            status, _, told = await client.answer()
            assert status == 400 and b"too much around them" in told

    on_a_still_clock(story)


HEADS = {
    "a long header": b"X-Long: " + b"a" * 20_000,
    "a long address": b"",
    "many headers": b"\r\n".join(b"X-%d: a" % number for number in range(10_000)),
    "many short headers": b"\r\n".join([b"a:"] * 101),
}


@pytest.mark.parametrize("piece", [1 << 20, 1000], ids=["in one piece", "in pieces"])
@pytest.mark.parametrize("name", HEADS)
def test_a_head_is_limited(name: str, piece: int) -> None:
    sent = HEALTH[:-2] + HEADS[name] + b"\r\n\r\n"
    if name == "a long address":
        sent = HEALTH.replace(b"/health", b"/health?" + b"a" * 30_000)

    async def story() -> None:
        async with serving(service_of(limits=LIMITS)) as server:
            client = await server.client()
            for at in range(0, min(len(sent), 20_000), piece):
                await client.send(sent[at : at + piece])
                await turns()
            status, _, told = await client.answer()
            assert status == 431 and b'{"error": ' in told and await client.rest() == b""

    on_a_still_clock(story)


@pytest.mark.parametrize("before", [b"", HEALTH], ids=["first", "second"])
def test_a_head_of_just_the_size_is_taken(before: bytes) -> None:
    def head(size: int) -> bytes:
        return HEALTH[:-2] + b"X: " + b"a" * (size - len(HEALTH) - 5) + b"\r\n\r\n"

    async def story() -> None:
        async with serving(service_of(limits=LIMITS)) as server:
            for size, status in ((LIMITS.header_bytes, 200), (LIMITS.header_bytes + 1, 431)):
                assert len(head(size)) == size
                client = await server.client()
                await client.send(before + head(size) + HEALTH)
                if before:
                    assert (await client.answer())[0] == 200
                assert (await client.answer())[0] == status

    on_a_still_clock(story)


def test_the_connection_that_was_idle_for_longest_makes_room(caplog: pytest.LogCaptureFixture) -> None:
    limits = Limits(window_s=0, connections=5)
    service = service_of(limits=limits)

    async def story() -> None:
        async with serving(service) as server:
            clients = await server.clients(5)
            for client in (*clients, clients[0]):  # so the second has been idle for longest
                assert await client.ask(HEALTH) == 200
            newcomer = await server.client()
            assert await newcomer.ask(HEALTH) == 200
            assert await clients[1].receive() == b""
            for client in (clients[0], *clients[2:], newcomer):
                assert await client.ask(HEALTH) == 200
            advance(SAID_EVERY_S)
            await turns()

    with caplog.at_level(logging.WARNING):
        on_a_still_clock(story)
    assert [record.getMessage() for record in caplog.records] == [
        "1 connections closed to make room for others"
    ]
    assert service.metrics.value("dragoman_dropped_connections_total") == 1


def test_where_all_connections_are_worked_for_a_newcomer_waits() -> None:
    service = service_of(limits=Limits(window_s=0, connections=2))
    shouter(service).go_on.clear()

    async def story() -> None:
        async with serving(service) as server:
            busy = await server.clients(2, REQUEST)
            await until(lambda: server.at(ConnectionStage.WORK) == 2)
            newcomer = await server.client()
            await newcomer.send(HEALTH)
            await turns()
            assert len(server.connections) == 2
            shouter(service).go_on.set()
            assert [(await client.answer())[0] for client in busy] == [200, 200]
            assert (await newcomer.answer())[0] == 200

    on_a_still_clock(story)


def test_silent_and_slow_connections_make_room_as_well() -> None:
    limits = Limits(window_s=0, connections=30)

    async def story() -> None:
        async with serving(service_of(limits=limits)) as server:
            for sent in (b"", b"POST /translate HT", REQUEST[:-1]):
                await server.clients(40, sent)
                assert await (await server.client()).ask(HEALTH) == 200
            assert len(server.connections) <= limits.connections

    on_a_still_clock(story)


@pytest.mark.usefixtures("many_files")
def test_five_hundred_connections_work() -> None:
    async def story() -> None:
        async with serving(service_of(limits=LIMITS)) as server:
            clients = await server.clients(500)
            for at in (0, 100, 200, 300, 400, 0):
                asked = [client.ask() for client in clients[at : at + 100]]
                assert await asyncio.gather(*asked) == [200] * 100
            assert len(server.connections) == 500

    on_a_still_clock(story)


def test_the_limit_of_open_files_is_raised_and_kept_to(monkeypatch: pytest.MonkeyPatch) -> None:
    now, told = (100, 500), []
    monkeypatch.setattr(resource, "getrlimit", lambda _: now)
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: told.append(both))
    files = len(list(Path("/dev/fd").iterdir()))
    assert abs(connections_possible() - (500 - 64 - files)) <= 3 and told == [(500, 500)]


OUT_OF_FILES = """
import asyncio, logging, resource, sys
from dragoman.serve.app import build
from dragoman.serve.run import listen
from dragoman.serve.server import Server
from serve.standin import service_of

logging.basicConfig(level=logging.INFO)
service = service_of()
listening = listen("127.0.0.1", 0)
most = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))
print(listening.getsockname()[1], flush=True)
asyncio.run(Server(build(service), service.limits, most).run(listening))
"""


def test_a_server_that_runs_out_of_files_is_still_there() -> None:
    """Its own limit of connections is far above what the system gives it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", OUT_OF_FILES, "1000"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        port = int(process.stdout.readline())

        async def story() -> None:
            clients = [await Client(port).connect() for _ in range(150)]
            for client in clients:
                await client.send(HEALTH)
            assert await (await Client(port).connect()).ask(HEALTH) == 200
            for client in clients:
                client.close()

        asyncio.run(story())
        process.terminate()
        log = process.stderr.read()
    assert "Traceback" not in log and log.count("no file descriptor") <= 10
