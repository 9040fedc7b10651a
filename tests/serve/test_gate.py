"""What every request passes: keys, sizes, times, overload; and what is never written down."""

import asyncio
import json
import logging
from collections.abc import Iterator
from unittest.mock import ANY

import pytest
from starlette.testclient import TestClient

from dragoman.errors import UserError
from dragoman.serve.app import Options
from dragoman.serve.keys import Keys
from dragoman.serve.limits import Limits
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Translated
from serve.live import HEALTH, advance, on_a_still_clock, request, serving, until
from serve.standin import client_of, service_of, shouter

KEY = "a-secret-key"
LOCKED = Options(keys=Keys([KEY, "another-key"]))
TEXT = {"q": "hello", "source": "en", "target": "de"}


def asking(text: str) -> bytes:
    return request(json.dumps({**TEXT, "q": text}).encode())


@pytest.fixture(scope="module")
def locked() -> Iterator[TestClient]:
    with client_of(service_of(), LOCKED) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "json", "status", "body"),
    [
        ("/translate", TEXT, 400, {"error": "Please contact the server operator to get an API key"}),
        ("/translate", {**TEXT, "api_key": "wrong"}, 403, {"error": "Invalid API key"}),
        ("/v2/translate", {"text": ["a"], "target_lang": "DE"}, 403, {"message": "Invalid API key"}),
    ],
)
def test_without_a_key(
    locked: TestClient, path: str, json: dict[str, object], status: int, body: dict[str, str]
) -> None:
    response = locked.post(path, json=json)
    assert (response.status_code, response.json()) == (status, body)


def test_every_route_is_locked_but_the_page_and_health(locked: TestClient) -> None:
    paths = ["/api/v1/languages", "/languages", "/frontend/settings", "/listPairs", "/tm/languages/"]
    paths += ["/v2/usage", "/v3/glossaries", "/metrics", "/openapi.json", "/nothing", "/api/v1/corrections"]
    assert {locked.get(path).status_code for path in paths} <= {400, 401, 403}
    for own in ("corrections", "alternatives", "documents"):
        assert locked.post(f"/api/v1/{own}", json={}).status_code == 401
    assert (
        locked.post("/suggest", data={"q": "a", "s": "b", "source": "en", "target": "de"}).status_code == 400
    )
    for path in ("/", "/docs", "/health", "/api/v1/health", "/api/v1/ready"):
        assert locked.get(path).status_code == 200


def test_a_key_in_every_place_where_a_client_puts_it(locked: TestClient) -> None:
    for header in (f"DeepL-Auth-Key {KEY}", f"Bearer {KEY}"):
        assert locked.get("/v2/usage", headers={"Authorization": header}).status_code == 200
    assert locked.get("/api/v1/languages", headers={"X-API-Key": KEY}).status_code == 200
    assert locked.post("/translate", json={**TEXT, "api_key": KEY}).status_code == 200
    assert locked.post("/translate", data={**TEXT, "api_key": KEY}).status_code == 200
    assert locked.request("GET", "/languages", data={"api_key": KEY}).status_code == 200
    assert locked.get("/translate", params={"langpair": "en|de", "q": "a", "key": KEY}).status_code == 200
    form = {"text": "a", "target_lang": "DE", "auth_key": KEY}
    assert locked.post("/v2/translate", data=form).status_code == 200


def test_bodies_that_are_too_large_or_no_json() -> None:
    with client_of(service_of(limits=Limits(body_bytes=1000))) as client:
        assert client.post("/translate", content=b"x" * 1001).status_code == 413

        def pieces() -> object:
            yield from (b"x" * 600 for _ in range(3))

        assert client.post("/translate", content=pieces()).status_code == 413  # type: ignore[arg-type]
        for body in (b"{", b"[]", b'"a"', b"[" * 900, b"\xff", b'{"q": "\\ud800"}'):
            for path in ("/translate", "/v2/translate", "/api/v1/translate"):
                response = client.post(path, content=body, headers={"Content-Type": "application/json"})
                assert response.status_code == 400, (path, body)
        broken = {"Content-Type": "multipart/form-data; boundary=x"}
        assert client.post("/translate_file", content=b"--y", headers=broken).status_code == 400


def test_an_error_within_is_told_without_the_text(caplog: pytest.LogCaptureFixture) -> None:
    service = service_of()
    shouter(service).error = RuntimeError("the text was: bad secret")
    with caplog.at_level(logging.INFO), client_of(service) as client:
        response = client.post("/translate", json={**TEXT, "q": "a bad secret"})
        client.get("/tm/en/de/unit/another secret")
        client.get("/translate", params={"langpair": "en|de", "q": "third secret"})
    assert (response.status_code, response.json()) == (
        500,
        {"error": "Internal error; see the log of the server"},
    )
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("dragoman")]
    assert any("RuntimeError at" in line and "standin.py" in line for line in ours) and len(ours) == 4
    assert "secret" not in "".join(ours)


def test_one_bad_sentence_is_no_matter_of_the_others() -> None:
    service = service_of(limits=Limits(window_s=0))
    shouter(service).error = UserError("too many tokens")

    async def story() -> None:
        asked = [service.translate([text], ("en", "de")) for text in ("good", "bad", "fine")]
        good, bad, fine = await asyncio.gather(*asked, return_exceptions=True)
        assert (good, fine) == ([Translated("GOOD", (), ANY)], [Translated("FINE", (), ANY)])
        assert isinstance(bad, Refusal) and (bad.status, bad.message) == (400, "too many tokens")

    on_a_still_clock(story)
    assert shouter(service).batches[0] == ["good", "bad", "fine"]


@pytest.mark.parametrize("workers", [1, 3])
def test_who_asks_at_once_is_answered_together_and_not_crossed(workers: int) -> None:
    service = service_of(limits=Limits(window_s=0, batch=16), workers=workers)
    texts = [f"text {number % 20}" for number in range(40)]

    async def story() -> None:
        found = await asyncio.gather(*(service.translate([text], ("en", "de")) for text in texts))
        assert [one.text for (one,) in found] == [text.upper() for text in texts]

    on_a_still_clock(story)
    batches = shouter(service).batches
    assert len(batches) <= 6 and max(map(len, batches)) <= 16
    assert service.metrics.value("dragoman_batches_total") == len(batches)


def test_what_was_translated_is_remembered() -> None:
    service = service_of(limits=Limits(cached=2))
    with client_of(service) as client:
        for text in ("one", "one", "two", "three", "one"):
            client.post("/translate", json={**TEXT, "q": text})
    assert shouter(service).batches == [["one"], ["two"], ["three"], ["one"]]


TEXTS = [f"text {number}" for number in range(10)]


def test_overload_is_refused_at_once_and_who_leaves_is_forgotten() -> None:
    service = service_of(limits=Limits(queue=2, window_s=0))
    slow = shouter(service)
    slow.go_on.clear()

    async def story() -> None:
        async with serving(service) as server:
            first, waits, leaves, refused = await server.clients(4)
            await first.send(asking("in work"))
            await until(lambda: service.metrics.value("dragoman_batches_total"))
            await waits.send(asking("waits"))
            await leaves.send(asking("leaves"))
            await until(lambda: service.waiting == 2)
            await refused.send(asking("too much"))
            status, head, told = await refused.answer()
            assert status == 429 and b"retry-after: 1\r\n" in head + b"\r\n"
            assert json.loads(told)["error"].startswith("Slowdown: 2 sentences wait already")
            leaves.close()
            await until(lambda: service.waiting == 1)
            slow.go_on.set()
            assert json.loads((await first.answer())[2]) == {"translatedText": "IN WORK"}
            assert json.loads((await waits.answer())[2]) == {"translatedText": "WAITS"}

    on_a_still_clock(story)
    assert slow.batches == [["in work"], ["waits"]]


def test_who_would_wait_too_long_is_sent_away() -> None:
    """Three seconds a sentence, as it seems: of three that wait the last would have to for nine."""
    service = service_of(limits=Limits(window_s=0, wait_s=8))
    slow, batcher = shouter(service), service.batchers["en", "de"]

    async def story() -> None:
        async with serving(service) as server:
            refused, *clients = await server.clients(5)
            assert await refused.ask(asking("first")) == 200
            slow.go_on.clear()
            batcher._pace = 3.0
            await clients[0].send(asking("in work"))
            await until(lambda: service.metrics.value("dragoman_batches_total") == 2)
            for client, text in zip(clients[1:], TEXTS, strict=False):
                await client.send(asking(text))
            await until(lambda: service.waiting == 3)
            await refused.send(asking("too late"))
            status, head, _ = await refused.answer()
            assert status == 429 and b"retry-after: 4\r\n" in head + b"\r\n"
            assert await refused.ask(asking("first")) == 200  # remembered: it does not have to wait
            slow.go_on.set()
            assert [(await client.answer())[0] for client in clients] == [200] * 4
            assert batcher._pace < 3

    on_a_still_clock(story)


def test_a_server_is_not_ready_where_a_newcomer_would_be_refused() -> None:
    service = service_of(limits=Limits(window_s=0, wait_s=8))
    slow, batcher = shouter(service), service.batchers["en", "de"]
    ready = HEALTH.replace(b"/health", b"/api/v1/ready")

    async def story() -> None:
        async with serving(service) as server:
            working, waiting, client = await server.clients(3)
            slow.go_on.clear()
            await working.send(asking("in work"))
            await until(lambda: service.metrics.value("dragoman_batches_total"))
            await waiting.send(asking("waits"))
            await until(lambda: service.waiting == 1)
            batcher._pace = 7.0
            assert await client.ask(ready) == 200
            batcher._pace = 9.0
            assert await client.ask(ready) == 503

    on_a_still_clock(story)


def test_time_is_limited() -> None:
    limits = Limits(window_s=0)
    service = service_of(limits=limits)
    slow = shouter(service)
    slow.go_on.clear()

    async def story() -> None:
        async with serving(service) as server:
            client = await server.client()
            await client.send(asking("late"))
            await until(lambda: service.metrics.value("dragoman_batches_total"))
            advance(limits.request_s - 1)
            assert await (await server.client()).ask(HEALTH) == 200
            assert server.gate.places.taken == 1
            advance(1)
            status, head, told = await client.answer()
            assert status == 503 and b"retry-after: 1" in head and b"took too long" in told
            slow.go_on.set()
            assert await client.ask(asking("in time")) == 200

    on_a_still_clock(story)


def test_requests_in_work_are_limited() -> None:
    service = service_of(limits=Limits(requests=2, window_s=0))
    slow = shouter(service)
    slow.go_on.clear()

    async def story() -> None:
        async with serving(service) as server:
            first, second, third = await server.clients(3)
            await first.send(asking("one"))
            await second.send(asking("two"))
            await until(lambda: server.gate.places.taken == 2)
            await third.send(asking("three"))
            status, _, told = await third.answer()
            assert status == 503 and b"Slowdown: too many requests at once" in told
            assert await third.ask(HEALTH) == 200
            slow.go_on.set()
            assert [(await one.answer())[0] for one in (first, second)] == [200, 200]
            assert await third.ask(asking("three")) == 200

    on_a_still_clock(story)


def test_a_client_that_leaves_stops_its_document() -> None:
    """Two batches of its sentences at most are in work when it leaves; the rest is never asked for."""
    service = service_of(limits=Limits(batch=2, window_s=0))
    slow = shouter(service)
    slow.go_on.clear()
    lines = "\n".join(f"line {n}" for n in range(40))
    names = [*(("source", "en"), ("target", "de")), ('file"; filename="a.txt', lines)]
    parts = [f'--x\r\nContent-Disposition: form-data; name="{a}"\r\n\r\n{b}\r\n' for a, b in names]
    body = "".join([*parts, "--x--\r\n"]).encode()
    head = "POST /api/v1/documents HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {len(body)}\r\n\r\n"

    async def story() -> None:
        async with serving(service) as server:
            client = await server.client()
            await client.send(head.encode() + body)
            await until(lambda: service.metrics.value("dragoman_batches_total"))
            client.close()
            await until(lambda: not server.gate.places.taken)
            slow.go_on.set()
            await until(lambda: not service.waiting and not service.batchers["en", "de"]._workers)

    on_a_still_clock(story)
    assert len(slow.batches) <= 2
