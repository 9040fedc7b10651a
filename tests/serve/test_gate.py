"""What every request passes: keys, sizes, times, overload; and what is never written down."""

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from starlette.testclient import TestClient

from dragoman.errors import UserError
from dragoman.serve.app import Options, build
from dragoman.serve.keys import Keys
from dragoman.serve.limits import Limits
from serve.standin import ADDRESS, client_of, service_of, shouter

KEY = "a-secret-key"
LOCKED = Options(keys=Keys([KEY, "another-key"]))
TEXT = {"q": "hello", "source": "en", "target": "de"}


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
    paths += ["/v2/usage", "/v3/glossaries", "/metrics", "/openapi.json", "/nothing"]
    assert {locked.get(path).status_code for path in paths} <= {400, 401, 403}
    for path in ("/", "/health", "/api/v1/health", "/api/v1/ready"):
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


def test_pages_elsewhere_may_ask_only_where_keys_are_needed(locked: TestClient) -> None:
    with client_of(service_of()) as client:
        assert "access-control-allow-origin" not in client.get("/languages").headers
        for host in ("evil.example", "evil.example:5000", ""):
            assert client.get("/languages", headers={"Host": host}).status_code == 421
        form = {"data": TEXT, "headers": {"Origin": "https://evil.example"}}
        assert client.post("/translate", **form).status_code == 403
        own = {"Origin": "http://localhost:5000", "Host": "localhost:5000"}
        assert client.post("/translate", data=TEXT, headers=own).status_code == 200
        for host in ("localhost:5000", "127.0.0.1", "[::1]:80", "10.0.0.1"):
            assert client.get("/languages", headers={"Host": host}).status_code == 200
    assert locked.options("/translate").headers["access-control-allow-origin"] == "*"
    named = {"Host": "translate.example", "Origin": "https://other.example", "X-API-Key": KEY}
    assert locked.get("/languages", headers=named).status_code == 200


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
    service = service_of(limits=Limits(window_s=0.05))
    shouter(service).error = UserError("too many tokens")
    with client_of(service) as client, ThreadPoolExecutor(3) as threads:
        texts = ["good", "bad", "fine"]
        found = list(threads.map(lambda text: client.post("/translate", json={**TEXT, "q": text}), texts))
    assert [one.status_code for one in found] == [200, 400, 200]
    assert found[1].json() == {"error": "too many tokens"}


@pytest.mark.parametrize("workers", [1, 3])
def test_who_asks_at_once_is_answered_together_and_not_crossed(workers: int) -> None:
    service = service_of(limits=Limits(window_s=0.05, batch=16), workers=workers)
    texts = [f"text {number % 20}" for number in range(40)]
    with client_of(service) as client, ThreadPoolExecutor(40) as threads:
        found = list(threads.map(lambda text: client.post("/translate", json={**TEXT, "q": text}), texts))
    assert [one.json()["translatedText"] for one in found] == [text.upper() for text in texts]
    batches = shouter(service).batches
    assert len(batches) < 30 and max(map(len, batches)) <= 16
    assert service.metrics.value("dragoman_batches_total") == len(batches)


def test_what_was_translated_is_remembered() -> None:
    service = service_of(limits=Limits(cached=2))
    with client_of(service) as client:
        for text in ("one", "one", "two", "three", "one"):
            client.post("/translate", json={**TEXT, "q": text})
    assert shouter(service).batches == [["one"], ["two"], ["three"], ["one"]]


async def _wait_for(condition: object) -> None:
    for _ in range(500):
        if condition():  # type: ignore[operator]
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came")


def test_overload_is_refused_at_once_and_who_leaves_is_forgotten() -> None:
    """Asked in the event loop itself, so that the order of things is known."""
    service = service_of(limits=Limits(queue=2, window_s=0))
    slow = shouter(service)
    slow.go_on.clear()

    async def story() -> None:
        transport = httpx.ASGITransport(build(service))
        async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:

            async def ask(text: str) -> httpx.Response:
                return await client.post("/translate", json={**TEXT, "q": text})

            first = asyncio.ensure_future(ask("in work"))
            await _wait_for(lambda: service.waiting == 0 and service.metrics.value("dragoman_batches_total"))
            waiting = [asyncio.ensure_future(ask(text)) for text in ("waits", "leaves")]
            await _wait_for(lambda: service.waiting == 2)
            refused = await ask("too much")
            assert refused.status_code == 429 and refused.headers["retry-after"] == "1"
            assert refused.json()["error"].startswith("Slowdown: 2 sentences wait already")
            assert (await client.get("/api/v1/ready")).status_code == 503
            waiting[1].cancel()
            await asyncio.sleep(0.01)
            slow.go_on.set()
            assert (await first).json() == {"translatedText": "IN WORK"}
            assert (await waiting[0]).json() == {"translatedText": "WAITS"}

    asyncio.run(story())
    assert slow.batches == [["in work"], ["waits"]]


def test_who_would_wait_too_long_is_sent_away() -> None:
    """Three seconds a sentence, as it seems: of three that wait the last would have to for nine."""
    service = service_of(limits=Limits(window_s=0, wait_s=8))
    slow, batcher = shouter(service), service.batchers["en", "de"]

    async def story() -> None:
        transport = httpx.ASGITransport(build(service))
        async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:

            async def ask(text: str) -> httpx.Response:
                return await client.post("/translate", json={**TEXT, "q": text})

            assert (await ask("first")).status_code == 200 and batcher.expected_wait_s == 0
            slow.go_on.clear()
            batcher._pace = 3.0
            asked = [asyncio.ensure_future(ask("in work"))]
            await _wait_for(lambda: service.metrics.value("dragoman_batches_total") == 2)
            asked += [asyncio.ensure_future(ask(f"text {number}")) for number in range(3)]
            await _wait_for(lambda: service.waiting == 3)
            refused = await ask("too late")
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "4")
            assert (await ask("first")).status_code == 200  # remembered: it does not have to wait
            assert (await client.get("/api/v1/ready")).status_code == 503
            slow.go_on.set()
            assert {one.status_code for one in await asyncio.gather(*asked)} == {200}
            assert batcher.expected_wait_s == 0 and batcher._pace < 3

    asyncio.run(story())


def test_time_and_requests_are_limited() -> None:
    service = service_of(limits=Limits(request_s=0.1, requests=2))
    slow = shouter(service)
    slow.go_on.clear()
    with client_of(service) as client:
        begun = time.perf_counter()
        late = client.post("/translate", json=TEXT)
        assert late.status_code == 503 and late.headers["retry-after"] == "1"
        assert time.perf_counter() - begun < 5
        with ThreadPoolExecutor(6) as threads:
            found = list(
                threads.map(lambda n: client.post("/translate", json={**TEXT, "q": f"a{n}"}), range(6))
            )
        assert {one.status_code for one in found} == {503}
        assert "Slowdown: too many requests at once" in {one.json()["error"] for one in found}
        slow.go_on.set()
        assert client.post("/translate", json=TEXT).status_code == 200


def test_a_client_that_leaves_stops_its_document() -> None:
    """Two batches of its sentences at most are in work when it leaves; the rest is never asked for."""
    service = service_of(limits=Limits(batch=2))
    slow = shouter(service)
    slow.go_on.clear()
    lines = "\n".join(f"line {n}" for n in range(40)).encode()

    async def story() -> None:
        transport = httpx.ASGITransport(build(service))
        async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:
            form = {"source": "en", "target": "de"}
            files = {"file": ("a.txt", lines)}
            asked = asyncio.ensure_future(client.post("/api/v1/documents", data=form, files=files))
            await _wait_for(lambda: service.metrics.value("dragoman_batches_total"))
            asked.cancel()
            await asyncio.sleep(0.3)
            slow.go_on.set()
            await _wait_for(lambda: threading.active_count() and not service.waiting)

    asyncio.run(story())
    assert len(slow.batches) <= 2
