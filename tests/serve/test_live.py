"""A real server on a real port: slow clients, the clients of others as they are, and the end by a signal."""

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn

from dragoman.errors import UserError
from dragoman.serve import protocol
from dragoman.serve.app import Options, build
from dragoman.serve.keys import Keys
from dragoman.serve.limits import Limits
from dragoman.serve.protocol import protocol_of, whole_request
from dragoman.serve.run import listen, serve
from dragoman.serve.service import Service
from serve.exported import small_export
from serve.standin import service_of, shouter

KEY = "a-secret-key"


@contextlib.contextmanager
def running(service: Service, options: Options | None = None) -> Iterator[str]:
    """The address of a server in a thread of its own."""
    gate = build(service, options)
    config = uvicorn.Config(
        gate,
        http=protocol_of(service.limits, gate),
        ws="none",
        log_config=None,
        access_log=False,
    )
    server = uvicorn.Server(config)
    with contextlib.closing(listen("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join(10)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    service = service_of(("en", "de"), ("de", "en"), limits=Limits(receive_s=0.3))
    with running(service, Options(keys=Keys([KEY]))) as found:
        yield found


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /translate HT",
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx",
    ],
)
def test_who_sends_too_slowly_is_sent_away(address: str, sent: bytes) -> None:
    port = int(address.rstrip("/").rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(sent)
        begun, received = time.perf_counter(), b""
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(4096):
                received += part
        assert time.perf_counter() - begun < 4
        assert b"408" in received.partition(b"\r\n")[0] or not sent.endswith(b"x")


def test_a_slow_head_leaves_less_time_for_the_body(address: str) -> None:
    """0.2 s for the head and 0.2 s for the body are too much together, where 0.3 s are allowed."""
    port = int(address.rstrip("/").rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\n")
        time.sleep(0.2)
        connection.sendall(b"Content-Length: 9\r\n\r\nx")
        begun = time.perf_counter()
        assert connection.recv(4096).startswith(b"HTTP/1.1 408")
        assert time.perf_counter() - begun < 0.25


ORDINARY = b"POST /v2/translate?a=b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"


def test_only_whole_and_ordinary_requests_are_answered_unseen() -> None:
    assert whole_request(ORDINARY, 1000) == ("POST", "/v2/translate")
    assert whole_request(b"GET /languages HTTP/1.1\r\nConnection: Keep-Alive\r\n\r\n", 1000) == (
        "GET",
        "/languages",
    )
    assert whole_request(ORDINARY, 20) is None
    for old, new in (
        (b"{}", b"{"),
        (b"{}", b"{}GET"),
        (b"POST", b"PUT"),
        (b"1.1", b"1.0"),
        (b"/v2", b"/%76%32"),
        (b"Host", b"Content-Length"),
        (b"Host: localhost", b"Transfer-Encoding: chunked"),
        (b"Host: localhost", b"Expect: 100-continue"),
        (b"Host: localhost", b"Connection: close"),
    ):
        assert whole_request(ORDINARY.replace(old, new), 1000) is None, new
    for cut in range(len(ORDINARY)):
        assert whole_request(ORDINARY[:cut], 1000) is None


def test_a_full_server_refuses_without_looking(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "SAID_EVERY_S", 0.2)
    service = service_of(limits=Limits(requests=1))
    shouter(service).go_on.clear()
    with caplog.at_level("INFO"), running(service) as address, httpx.Client(base_url=address) as client:
        body = {"q": "hello", "source": "en", "target": "de"}
        asking = threading.Thread(target=lambda: client.post("/translate", json=body))
        asking.start()
        while not service.metrics.value("dragoman_batches_total"):
            time.sleep(0.005)
        port = int(address.rstrip("/").rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            for _ in range(3):  # the connection stays
                connection.sendall(ORDINARY)
                head, _, told = connection.recv(4096).partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
                assert b"retry-after: 1" in head and b"x-frame-options: DENY" in head
                assert told == b'{"message": "Slowdown: too many requests at once"}'
            connection.sendall(ORDINARY[:-2])  # in two parts: the gate sees it
            time.sleep(0.05)
            connection.sendall(b"{}")
            assert b"too many requests" in connection.recv(4096).partition(b"\r\n\r\n")[2]
        assert client.get("/health").status_code == 200
        shouter(service).go_on.set()
        asking.join(5)
        assert 'dialect="deepl",status="503"} 4' in client.get("/metrics").text
        time.sleep(0.2)
    lines = [record.getMessage() for record in caplog.records if record.name == "dragoman.serve"]
    assert "3 requests refused at once with 503" in lines


def test_answers_are_sent_at_once() -> None:
    """asyncio sets TCP_NODELAY only for sockets that say they are TCP; else an answer waits 40 ms."""
    with contextlib.closing(listen("127.0.0.1", 0)) as listening:
        assert listening.proto == socket.IPPROTO_TCP


def test_the_client_of_deepl(address: str) -> None:
    deepl = pytest.importorskip("deepl")
    client = deepl.DeepLClient(KEY, server_url=address)
    one = client.translate_text("Good morning. Thank you.", target_lang="DE", source_lang="EN")
    assert (one.text, one.detected_source_lang, one.billed_characters) == (
        "GOOD MORNING. THANK YOU.",
        "EN",
        24,
    )
    several = client.translate_text(
        ["a <x>b</x>", "c"], target_lang="EN-GB", tag_handling="xml", ignore_tags="x"
    )
    assert [each.text for each in several] == ["A <x>b</x>", "C"]
    assert [each.code for each in client.get_target_languages()] == ["DE", "EN-GB", "EN-US"]
    assert client.get_usage().character.valid
    made = client.create_glossary("g", source_lang="EN", target_lang="DE", entries={"cat": "Kater"})
    assert client.get_glossary_entries(made) == {"cat": "Kater"}
    asked = {"source_lang": "EN", "target_lang": "DE", "glossary": made}
    assert client.translate_text("A cat.", **asked).text == "A Kater."
    client.delete_glossary(made)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_glossary(made)
    with pytest.raises(deepl.AuthorizationException):
        deepl.DeepLClient("a-wrong-key", server_url=address).get_usage()
    with pytest.raises(deepl.DeepLException, match="XX is not supported"):
        client.translate_text("a", target_lang="XX")
    handle = client.translate_document_upload(
        io.BytesIO(b"<html><p>some text</p></html>"), target_lang="DE", source_lang="EN", filename="a.html"
    )
    while not (status := client.translate_document_get_status(handle)).done:
        assert status.ok
    written = io.BytesIO()
    client.translate_document_download(handle, written)
    assert written.getvalue() == b"<html><p>SOME TEXT</p></html>"


def test_the_client_of_libretranslate(address: str) -> None:
    client = pytest.importorskip("libretranslatepy").LibreTranslateAPI(address, api_key=KEY)
    assert client.translate("Hello.", "en", "de") == "HELLO."
    assert client.detect("der Hund und die Katze")[0]["language"] == "de"
    assert {one["code"] for one in client.languages()} == {"en", "de"}


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_export(tmp_path_factory.mktemp("serve") / "export")


def test_the_command_serves_an_export_without_torch_and_ends_by_a_signal(export: Path) -> None:
    """What is in work at SIGTERM is answered; nobody is let in any more."""
    program = (
        "import sys\n"
        "sys.modules['torch'] = sys.modules['jaxtyping'] = None\n"
        "from dragoman.cli.main import main\n"
        "main()"
    )
    command = [sys.executable, "-c", program, "serve", str(export), "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        told = process.stderr.readline()
        assert "en→de" in told and "without keys" in told
        address = told.split()[0]
        text = "the cat sat on the mat. A dog ran under the red mat. " * 40
        found: list[httpx.Response] = []

        def ask() -> None:
            body = {"q": text, "source": "en", "target": "de", "alternatives": 3}
            found.append(httpx.post(f"{address}translate", json=body, timeout=30))

        asking = threading.Thread(target=ask)
        asking.start()
        metrics = ""
        while "dragoman_batches_total 1" not in metrics:
            metrics = httpx.get(f"{address}metrics", timeout=30).text
        process.send_signal(signal.SIGTERM)
        asking.join(30)
        log = process.stderr.read()
        assert process.wait(30) == -signal.SIGTERM
    assert found[0].status_code == 200 and len(found[0].json()["alternatives"]) == 3
    assert "the cat" not in log and "Traceback" not in log
    with pytest.raises(httpx.ConnectError):
        httpx.get(address)


def test_what_is_refused_at_the_start() -> None:
    service = service_of()
    with pytest.raises(UserError, match=r"--host 0\.0\.0\.0: others could reach it; give --key-file"):
        serve(service, Options(), "0.0.0.0", 0, print)
    with contextlib.closing(listen("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"--port {port}: cannot listen on 127.0.0.1"):
            serve(service, Options(), "127.0.0.1", port, print)
