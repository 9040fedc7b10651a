"""The end: what is in work is answered, nobody else is let in, and the process says whether all went well."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.errors import UserError
from dragoman.serve.app import build
from dragoman.serve.connections import ConnectionStage
from dragoman.serve.limits import Limits
from dragoman.serve.run import listen, until_stopped
from dragoman.serve.server import Server
from serve.live import (
    HEALTH,
    NEVER_S,
    REQUEST,
    Client,
    Running,
    advance,
    on_a_still_clock,
    request,
    turns,
    until,
)
from serve.standin import service_of, shouter

SENTENCES = [f"sentence number {number} of many" for number in range(80)]
PROGRAM = """
import sys, threading
from dragoman.serve.app import Options
from dragoman.serve.limits import Limits
from dragoman.serve.run import serve
from serve.standin import service_of, shouter

service = service_of(limits=Limits(batch=8, drain_s=3600, request_s=3600))
slow = shouter(service)
slow.go_on.clear()

def wait_for_the_word():
    sys.stdin.readline()
    slow.go_on.set()

threading.Thread(target=wait_for_the_word, daemon=True).start()
serve(service, Options(), "127.0.0.1", 0, lambda address: print(address, flush=True))
"""


def asking(text: str) -> bytes:
    return request(json.dumps({"q": text, "source": "en", "target": "de"}).encode())


async def taken(port: int) -> float:
    """How many sentences have come, be they waiting or in work."""
    client = await Client(port).connect()
    await client.send(HEALTH.replace(b"health", b"metrics"))
    _, _, told = await client.answer()
    client.close()
    values = dict(line.split() for line in told.decode().splitlines() if line.startswith("dragoman"))
    names = ("dragoman_translated_sentences_total", "dragoman_waiting_sentences")
    return sum(float(values[name]) for name in names)


async def refuses(port: int) -> bool:
    client = Client(port)
    try:
        await client.connect()
    except ConnectionRefusedError:
        return True
    finally:
        client.close()
    return False


def test_all_of_eighty_different_sentences_are_answered_after_a_signal(tmp_path: Path) -> None:
    """The translator begins when the port is closed already."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM], text=True, env=environment, stderr=log, **pipes
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        port = int(process.stdout.readline().rstrip("/\n").rpartition(":")[2])

        async def story() -> None:
            assert process.stdin is not None
            idle = await Client(port).connect()
            assert await idle.ask(HEALTH) == 200
            clients = [await Client(port).connect() for _ in SENTENCES]
            for client, text in zip(clients, SENTENCES, strict=True):
                await client.send(asking(text))
            while await taken(port) < len(SENTENCES):
                await asyncio.sleep(0)
            process.send_signal(signal.SIGTERM)
            assert await idle.receive() == b""
            while not await refuses(port):
                await asyncio.sleep(0)
            process.stdin.write("go on\n")
            process.stdin.flush()
            for client, text in zip(clients, SENTENCES, strict=True):
                status, head, told = await client.answer()
                assert (status, json.loads(told)) == (200, {"translatedText": text.upper()})
                assert b"connection: close" in head.lower() and await client.rest() == b""

        try:
            asyncio.run(asyncio.wait_for(story(), NEVER_S))
            assert process.wait() == 0
        finally:
            process.kill()
    told = (tmp_path / "log").read_text()
    assert "Traceback" not in told and "number 7 of" not in told


def stopping(story, limits: Limits) -> None:  # type: ignore[no-untyped-def]
    """With a server, the task that runs it, and a client whose request is in work."""
    service = service_of(limits=limits)
    shouter(service).go_on.clear()

    async def told() -> None:
        gate, listening = build(service), listen("127.0.0.1", 0)
        server = Server(gate, limits)
        running = Running(server, gate, listening.getsockname()[1])
        task = asyncio.ensure_future(server.run(listening))
        await until(lambda: server.serving)
        client = await running.client()
        await client.send(REQUEST)
        await until(
            lambda: running.at(ConnectionStage.WORK) and service.metrics.value("dragoman_batches_total")
        )
        try:
            await story(running, task, client, shouter(service))
        finally:
            shouter(service).go_on.set()
            running.close()

    on_a_still_clock(told)


def test_whoever_is_connected_is_let_in_and_idle_connections_are_closed() -> None:
    async def story(server, task, client, slow) -> None:  # type: ignore[no-untyped-def]
        idle, sending, silent = await server.clients(3)
        assert await idle.ask(HEALTH) == 200
        await sending.send(REQUEST[:-5])
        await until(lambda: server.at(ConnectionStage.BODY) == 1)
        just = Client(server.port)  # the system has accepted it, the server has not
        await just.connect()
        await just.send(HEALTH)
        server.server.stop()
        assert await idle.receive() == await silent.receive() == b""
        assert (await just.answer())[0] == 200 and await refuses(server.port)
        slow.go_on.set()
        assert await sending.ask(REQUEST[-5:]) == (await client.answer())[0] == 200
        assert await task == 0

    stopping(story, Limits(window_s=0))


def test_what_takes_too_long_is_cut_off_and_counted() -> None:
    limits = Limits(window_s=0, drain_s=20)

    async def story(server, task, client, _) -> None:  # type: ignore[no-untyped-def]
        server.server.stop()
        await until(lambda: server.connections.draining)
        advance(19)
        await turns()
        assert not task.done()
        advance(1)
        assert await task == 1 and (await client.answer())[0] == 0

    stopping(story, limits)


def test_a_second_signal_waits_for_nobody() -> None:
    async def story(server, task, client, _) -> None:  # type: ignore[no-untyped-def]
        server.server.stop()
        await until(lambda: server.connections.draining)
        assert not task.done()
        server.server.stop()
        assert await task == 1 and (await client.answer())[0] == 0

    stopping(story, Limits(window_s=0))


def test_the_command_fails_where_somebody_got_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(*_: object) -> int:
        return 3

    monkeypatch.setattr(Server, "run", run)
    service = service_of()
    with pytest.raises(UserError, match="stopped, and 3 requests got no answer within 30 s"):
        until_stopped(build(service), service.limits, "127.0.0.1", 0, print)
