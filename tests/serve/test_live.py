"""A real server on a real port: cheap refusals, the clients of others as they are, and the command."""

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from dragoman.errors import UserError
from dragoman.serve.app import Options
from dragoman.serve.keys import Keys
from dragoman.serve.limits import Limits
from dragoman.serve.run import listen, serve
from dragoman.serve.shed import SAID_EVERY_S, whole_request
from serve.exported import small_export
from serve.live import HEALTH, REQUEST, advance, in_a_thread, on_a_still_clock, serving, until
from serve.standin import service_of, shouter

KEY = "a-secret-key"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with in_a_thread(service_of(("en", "de"), ("de", "en")), Options(keys=Keys([KEY]))) as found:
        yield found


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


def test_a_full_server_refuses_without_looking(caplog: pytest.LogCaptureFixture) -> None:
    service = service_of(limits=Limits(requests=1, window_s=0))
    shouter(service).go_on.clear()

    async def story() -> None:
        async with serving(service) as server:
            asking, client = await server.clients(2)
            await asking.send(REQUEST)
            await until(lambda: service.metrics.value("dragoman_batches_total"))
            for _ in range(3):  # the connection stays
                await client.send(ORDINARY)
                status, head, told = await client.answer()
                assert status == 503 and b"retry-after: 1" in head and b"x-frame-options: DENY" in head
                assert told == b'{"message": "Slowdown: too many requests at once"}'
            await client.send(ORDINARY[:-2])  # in two parts: the gate sees it
            status, _, told = await client.answer()
            assert status == 503 and b"too many requests" in told
            await client.send(b"{}")
            assert await client.ask(HEALTH) == 200
            advance(SAID_EVERY_S)
            shouter(service).go_on.set()
            assert (await asking.answer())[0] == 200
            await asking.send(HEALTH.replace(b"health", b"metrics"))
            assert b'dialect="deepl",status="503"} 4' in (await asking.answer())[2]

    with caplog.at_level("INFO"):
        on_a_still_clock(story)
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


def test_the_command_serves_an_export_without_torch_and_ends_by_a_signal(
    export: Path, tmp_path: Path
) -> None:
    program = (
        "import sys\n"
        "sys.modules['torch'] = sys.modules['jaxtyping'] = None\n"
        "from dragoman.cli.main import main\n"
        "main()"
    )
    command = [sys.executable, "-c", program, "serve", str(export), "--port", "0"]
    command += ["--corrections", str(tmp_path / "corrections.tmx")]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        told = process.stderr.readline()
        assert "en→de" in told and "without keys" in told
        address = told.split()[0]
        body = {"q": "the cat sat on the mat", "source": "en", "target": "de", "alternatives": 3}
        found = httpx.post(f"{address}translate", json=body, timeout=None)
        better = {**body, "s": "die Katze saß auf der Matte"}
        assert httpx.post(f"{address}suggest", data=better, timeout=None).json() == {"success": True}
        corrected = httpx.post(f"{address}translate", json=body, timeout=None).json()
        process.send_signal(signal.SIGTERM)
        log = process.stderr.read()
        assert process.wait() == 0
    assert found.status_code == 200 and len(found.json()["alternatives"]) == 3
    assert corrected["translatedText"] == "die Katze saß auf der Matte"
    assert "<seg>the cat sat on the mat</seg>" in (tmp_path / "corrections.tmx").read_text("utf-8")
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
