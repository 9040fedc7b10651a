"""One connection: how long it may take for what, what an answer is to a request that is odd, and that no
request is lost where a connection is closed in the moment that it comes."""

import asyncio

import pytest
from starlette.types import Receive, Scope, Send

from dragoman.serve.batcher import Kindred
from dragoman.serve.connections import ConnectionStage
from dragoman.serve.gate import Gate
from dragoman.serve.limits import Limits
from dragoman.serve.metrics import Metrics
from dragoman.serve.protocol import Connection
from serve.live import (
    BODY,
    HEAD,
    HEALTH,
    REQUEST,
    advance,
    on_a_still_clock,
    request,
    serving,
    serving_gate,
    turns,
    until,
)
from serve.standin import service_of, shouter

LIMITS = Limits(window_s=0)


def test_an_idle_connection_is_not_closed_while_a_request_comes_on_it() -> None:
    """At ten times its capacity a server lost two of 6,197 requests in this way."""

    async def story() -> None:
        async with serving(service_of(limits=LIMITS)) as server:
            client = await server.client()
            assert await client.ask() == 200
            (own,) = server.connections
            await client.send(REQUEST)  # the system has it, the event loop does not know yet
            assert not own.drop()
            assert b"HELLO" in (await client.answer())[2]
            assert own.drop()
            assert await client.receive() == b""

    on_a_still_clock(story)


def test_idle_connections_stay_for_a_time() -> None:
    async def story() -> None:
        async with serving(service_of(limits=LIMITS)) as server:
            client = await server.client()
            assert await client.ask() == 200
            advance(LIMITS.idle_s - 1)
            assert await client.ask() == 200  # from here on anew
            advance(LIMITS.idle_s - 1)
            await turns()
            assert len(server.connections) == 1
            advance(2)
            assert await client.receive() == b""

    on_a_still_clock(story)


@pytest.mark.parametrize(
    ("sent", "status"),
    [(b"", 0), (b"POST /translate HT", 0), (HEAD + b"Content-Length: 9\r\n\r\nx", 408)],
    ids=["nothing", "head", "body"],
)
def test_who_sends_too_slowly_is_sent_away(sent: bytes, status: int) -> None:
    async def story() -> None:
        async with serving(service_of(limits=LIMITS)) as server:
            client = await server.client()
            await client.send(sent)
            stage = ConnectionStage.BODY if status else ConnectionStage.HEAD if sent else ConnectionStage.NEW
            await until(lambda: server.at(stage))
            await turns()
            advance(LIMITS.receive_s - 1)
            await turns()
            assert server.at(stage) == 1
            advance(1)
            assert (await client.answer())[0] == status
            assert await client.rest() == b""

    on_a_still_clock(story)


def test_a_slow_head_leaves_less_time_for_the_body() -> None:
    async def story() -> None:
        async with serving(service_of(limits=LIMITS)) as server:
            client = await server.client()
            await client.send(HEAD)
            await until(lambda: server.at(ConnectionStage.HEAD))
            advance(LIMITS.receive_s - 1)
            await client.send(b"Content-Length: 9\r\n\r\nx")
            await until(lambda: server.gate.bodies.coming)
            advance(1)
            assert (await client.answer())[0] == 408

    on_a_still_clock(story)


def test_a_document_may_take_longer() -> None:
    head = b"POST /v2/document HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nContent-Type: "

    async def story() -> None:
        async with serving(service_of(limits=LIMITS)) as server:
            form, other = await server.clients(2)
            await form.send(head + b"multipart/form-data; boundary=x\r\n\r\nx")
            await other.send(head + b"application/json\r\n\r\nx")
            await until(lambda: server.gate.bodies.coming == 2)
            advance(LIMITS.receive_s)
            assert (await other.answer())[0] == 408
            advance(5 * LIMITS.receive_s)
            assert (await form.answer())[0] == 408

    on_a_still_clock(story)


def test_a_refused_body_that_comes_late_is_no_slow_request() -> None:
    """The rest of what was refused leaves the connection idle; it does not begin a request."""
    service = service_of(limits=Limits(requests=1, window_s=0))
    shouter(service).go_on.clear()

    async def story() -> None:
        async with serving(service) as server:
            other, client = await server.clients(2)
            await other.send(REQUEST)
            await until(lambda: service.metrics.value("dragoman_batches_total"))
            assert await client.ask(REQUEST[:-9]) == 503
            await client.send(REQUEST[-9:])
            await until(lambda: server.at(ConnectionStage.IDLE))
            advance(2 * LIMITS.receive_s)
            await turns()
            assert len(server.connections) == 2
            shouter(service).go_on.set()
            assert (await other.answer())[0] == 200
            assert await client.ask() == 200

    on_a_still_clock(story)


@pytest.mark.parametrize(("full", "method"), [(False, b"POST"), (True, b"POST"), (False, b"HEAD")])
def test_rubbish_after_a_head_has_one_answer_and_no_traceback(
    full: bool, method: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The application has been called when the body breaks off; if it has answered, that is the answer."""
    service = service_of(limits=Limits(requests=1, window_s=0))
    shouter(service).go_on.clear()

    async def story() -> None:
        async with serving(service) as server:
            other, client = await server.clients(2)
            if full:  # then a request is refused before its body is there
                await other.send(REQUEST)
                await until(lambda: service.metrics.value("dragoman_batches_total"))
            head = HEAD.replace(b"POST", method)
            await client.send(head + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
            answered = service.metrics.value
            await until(lambda: answered("dragoman_requests_total") if full else server.gate.bodies.coming)
            await client.send(b"zz\r\n")
            told = await client.rest()
            assert told.startswith(b"HTTP/1.1 503" if full else b"HTTP/1.1 400")
            assert told.count(b"HTTP/1.1") == 1
            client.close()
            await until(lambda: len(server.connections) == 1)

    with caplog.at_level("INFO"):
        on_a_still_clock(story)
    assert not [one for one in caplog.records if one.exc_info or one.levelname == "ERROR"]


def test_requests_that_come_at_once_are_answered_in_their_order() -> None:
    async def story() -> None:
        async with serving(service_of(limits=LIMITS)) as server:
            client = await server.client()
            texts = [b'{"q": "n%d", "source": "en", "target": "de"}' % number for number in range(5)]
            await client.send(b"".join(map(request, texts)) + HEALTH)
            found = [await client.answer() for _ in range(6)]
            assert [b"N%d" % n in body for n, (_, _, body) in enumerate(found[:5])] == [True] * 5
            assert found[5][0] == 200

    on_a_still_clock(story)


def test_the_ways_of_http() -> None:
    """100 to who waits for it, an old version, the end on request, an upgrade that there is not."""

    async def story() -> None:
        async with serving(service_of(limits=LIMITS)) as server:
            client = await server.client()
            whole = request(BODY, b"Expect: 100-continue")
            await client.send(whole[: -len(BODY)])
            assert (await client.receive()).startswith(b"HTTP/1.1 100 ")
            assert await client.ask(BODY) == 200
            old = await server.client()
            assert await old.ask(HEALTH.replace(b"1.1", b"1.0")) == 200 and await old.rest() == b""
            last = await server.client()
            assert await last.ask(request(BODY, b"Connection: close")) == 200 and await last.rest() == b""
            upgraded = await server.client()
            assert await upgraded.ask(request(BODY, b"Connection: upgrade", b"Upgrade: websocket")) == 200

    on_a_still_clock(story)


def test_head_is_answered_like_get_without_a_body() -> None:
    async def story() -> None:
        async with serving(service_of(limits=LIMITS)) as server:
            client = await server.client()
            await client.send(b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            head, _, body = (await client.rest()).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200") and b"content-length: " in head and body == b""

    on_a_still_clock(story)


def test_who_is_refused_while_it_sends_can_read_why() -> None:
    """It sends on after the answer, as clients do that do not look until they have sent all."""

    async def story() -> None:
        async with serving(service_of(limits=LIMITS)) as server:
            client = await server.client()
            await client.send(HEAD + b"Content-Length: 9999999\r\n\r\n")
            await until(lambda: server.at(ConnectionStage.ENDING))
            for _ in range(20):
                await client.send(b"x" * 10_000)
            status, head, _ = await client.answer()
            assert status == 413 and b"connection: close" in head.lower()
            advance(10)
            await until(lambda: not len(server.connections))

    on_a_still_clock(story)


def test_who_does_not_take_its_answer_is_sent_away() -> None:
    """And no copy of the answer is made for it."""
    large = bytes(30 << 20)

    async def answers(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            while True:
                await send({"type": (await receive())["type"] + ".complete"})
        headers = [(b"content-length", b"%d" % len(large))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": large})

    async def story() -> None:
        async with serving_gate(Gate(answers, LIMITS, Metrics(), None), LIMITS) as server:
            reads, does_not = await server.clients(2, HEALTH)
            await until(lambda: server.at(ConnectionStage.SENDING) == 2)
            for own in server.connections:
                assert isinstance(own, Connection) and own._transport.get_write_buffer_size() < 1 << 18
            assert len((await reads.answer())[2]) == len(large)
            await until(lambda: server.at(ConnectionStage.IDLE))
            advance(LIMITS.send_s)
            await until(lambda: len(server.connections) == 1)
            assert len(await does_not.rest()) < len(large)

    on_a_still_clock(story)


@pytest.mark.parametrize("workers", [1, 2])
def test_who_asks_when_the_last_worker_has_just_gone_has_a_worker(workers: int) -> None:
    service = service_of(limits=LIMITS, workers=workers)
    batcher = service.batchers["en", "de"]

    async def story() -> None:
        first = asyncio.ensure_future(batcher.ask(["one"], Kindred()))
        while not batcher.waiting:
            await asyncio.sleep(0)
        (ticket,) = batcher._queue._clients[""]
        await ticket.left[0].future  # goes on before anything that the worker's end sets off
        (answer,) = await batcher.ask(["two"], Kindred())
        assert answer.texts == ("TWO",)
        await first

    on_a_still_clock(story)
    service.close()
