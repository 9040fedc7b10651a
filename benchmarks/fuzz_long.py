"""Requests that nobody means, for as long as one likes, to servers that are processes of their own.

What `rubbish.py` makes is sent in every way that a client can send it: at once, with bytes that are no HTTP,
in pieces with pauses, several on one connection, in chunks of any size, and by somebody who leaves before the
answer. Beside it schemathesis sends what the description of our API allows. After every round the server has
to be there, and its memory is noted.
"""

import asyncio
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clients import connect
from rubbish import Rubbish, Sent
from serve_attacks import resident_mib

KEY = "the-key-of-the-fuzzing-client"
PATIENCE_S = 60.0
AT_ONCE = 32
EXAMPLES = 6
"""Of schemathesis, for each operation in each round."""
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
SERVER = """
import sys
from dragoman.serve.run import until_stopped
from fuzz_serve import LIMITS, gates
until_stopped(gates()[int(sys.argv[1])], LIMITS, "127.0.0.1", 0, lambda told: print(told, flush=True))
"""
Way = Callable[[int, Sent, random.Random], Awaitable[list[int]]]
"""Sends it to a port; the statuses of the answers, 0 for a connection that was closed without one."""


@dataclass
class Tally:
    statuses: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    lost: Counter[str] = field(default_factory=Counter)
    """Neither answered nor closed within the time, by kind."""
    faults: list[str] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    """MiB of both servers after each round."""
    errors: int = 0
    tracebacks: int = 0
    seconds: float = 0.0

    def note(self, kind: str, sent: str, statuses: list[int]) -> None:
        self.statuses[kind].update(statuses)
        for status in statuses:
            if status >= 500 and status != 503:
                self.faults.append(f"{status} to {kind}: {sent}")

    def growth(self) -> float:
        """From a tenth of the time, when all is warm, to the end."""
        return self.memory[-1] - self.memory[len(self.memory) // 10] if self.memory else 0.0


def statuses_of(answer: bytes) -> list[int]:
    """Of all answers that came on a connection."""
    heads = [part for part in answer.split(b"HTTP/1.1 ")[1:] if part[:3].isdigit()]
    found = [int(head[:3]) for head in heads if not head.startswith(b"1")]
    return found or [0]


async def at_once(port: int, sent: Sent, chance: random.Random) -> list[int]:
    del chance
    return await _exchange(port, [sent.wire])


async def in_pieces(port: int, sent: Sent, chance: random.Random) -> list[int]:
    """With pauses; one in five stops in the middle and waits for what happens."""
    wire, pieces = sent.wire, []
    end = chance.randrange(1, len(wire)) if chance.random() < 0.2 else len(wire)
    at = 0
    while at < end:
        size = chance.choice((1, 1, 7, 100, 1000, 20_000)) if len(pieces) < 60 else end
        pieces.append(wire[at : min(end, at + size)])
        at += size
    return await _exchange(port, pieces, pause=lambda: chance.choice((0, 0, 0.001, 0.02)))


async def several(port: int, sent: Sent, chance: random.Random) -> list[int]:
    """On one connection, the next before the last is answered."""
    kept = sent.wire.replace(b"Connection: close\r\n", b"")
    return await _exchange(port, [kept] * chance.randrange(1, 5) + [sent.wire])


async def in_chunks(port: int, sent: Sent, chance: random.Random) -> list[int]:
    head, _, _ = sent.wire.partition(b"\r\n\r\n")
    head = head.replace(b"Content-Length: %d" % len(sent.body), b"Transfer-Encoding: chunked")
    size = chance.choice((1, 3, 50, 4000, 1 << 20))
    parts = [sent.body[at : at + size] for at in range(0, len(sent.body), size)][:5000]
    chunks = b"".join(b"%x%b\r\n%b\r\n" % (len(part), chance.choice((b"", b";a=b")), part) for part in parts)
    end = b"0\r\n" + chance.choice((b"", b"X: y\r\n")) + b"\r\n"
    return await _exchange(port, [head + b"\r\n\r\n" + chunks + end])


async def leaves(port: int, sent: Sent, chance: random.Random) -> list[int]:
    """Without a look at the answer, sometimes in the middle of the request."""
    _, writer = await connect(port)
    with contextlib.suppress(ConnectionError):
        writer.write(sent.wire[: chance.choice((len(sent.wire), chance.randrange(len(sent.wire))))])
        await asyncio.sleep(chance.choice((0, 0, 0.005)))
    writer.transport.abort() if chance.random() < 0.5 else writer.close()
    return [0]


WAYS: dict[str, Way] = {
    "at once": at_once,
    "in pieces": in_pieces,
    "several on a connection": several,
    "in chunks": in_chunks,
    "client leaves": leaves,
}


async def _exchange(port: int, pieces: list[bytes], pause: Callable[[], float] = lambda: 0.0) -> list[int]:
    reader, writer = await connect(port)
    answer = asyncio.ensure_future(reader.read())
    try:
        for piece in pieces:
            if answer.done():
                break
            writer.write(piece)
            if seconds := pause():
                await asyncio.sleep(seconds)
        with contextlib.suppress(OSError):
            writer.write_eof() if b"close" not in pieces[-1].lower() else None
        return statuses_of(await answer)
    except ConnectionError:
        return [0]
    finally:
        answer.cancel()
        writer.close()


async def round_of(ports: list[int], number: int, size: int, tally: Tally) -> None:
    rubbish, chance = Rubbish(number), random.Random(number)

    async def one(name: str, way: Way) -> None:
        sent, port = rubbish.on_the_wire() if name == "at once" else rubbish.request(), chance.choice(ports)
        if port == ports[1] and chance.random() < 0.5 and sent.raw is None:
            sent = Sent(sent.kind, sent.method, sent.path, (("X-API-Key", KEY), *sent.headers), sent.body)
        kind = f"{name}, no HTTP" if sent.raw is not None else name
        try:
            async with asyncio.timeout(PATIENCE_S):
                tally.note(kind, repr(sent.wire[:300]), await way(port, sent, chance))
        except TimeoutError:
            tally.lost[kind] += 1
            tally.faults.append(f"nothing for {PATIENCE_S:g} s to {kind}: {sent.wire[:300]!r}")
        except OSError as error:
            tally.faults.append(f"{type(error).__name__} to {kind}: {sent.wire[:300]!r}")

    async def client() -> None:
        for _ in range(size // AT_ONCE):
            await one(*chance.choice(list(WAYS.items())))

    await asyncio.gather(*(client() for _ in range(AT_ONCE)))


def described(port: int, seed: int, tally: Tally) -> None:
    """What the description of the API allows, and answers as it says. This blocks."""
    import hypothesis
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    held = [not_a_server_error, checks.content_type_conformance, checks.response_schema_conformance]
    schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")
    for operation in (found.ok() for found in schema.get_all_operations()):

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            suppress_health_check=list(hypothesis.HealthCheck),
            phases=[hypothesis.Phase.generate],
        )
        @hypothesis.given(case=operation.as_strategy())
        def holds(case: Any) -> None:
            answer = case.call()
            tally.statuses["schemathesis"][answer.status_code] += 1
            case.validate_response(answer, checks=held)

        try:
            holds()
        except Exception as error:
            tally.faults.append(f"schemathesis: {operation.path}: {type(error).__name__}: {str(error)[:300]}")


@contextlib.contextmanager
def servers(folder: Path) -> Iterator[list[tuple[subprocess.Popen[str], int]]]:
    """One without keys, one with them; each writes its log into a file."""
    found: list[tuple[subprocess.Popen[str], int]] = []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        for keys in (0, 1):
            with (folder / f"log{keys}").open("w") as log:
                command = [sys.executable, "-c", SERVER, str(keys)]
                process = subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
                )
            assert process.stdout is not None
            found.append((process, int(process.stdout.readline().rstrip("/\n").rpartition(":")[2])))
        yield found
    finally:
        for process, _ in found:
            process.terminate()
        for process, _ in found:
            process.wait()


async def run_for(minutes: float, seed: int, size: int = 3200) -> Tally:
    tally, begun = Tally(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        with servers(Path(folder)) as running:
            ports = [port for _, port in running]
            number = seed
            while time.perf_counter() - begun < 60 * minutes:
                number += 1
                await round_of(ports, number, size, tally)
                await asyncio.to_thread(described, ports[0], number, tally)
                for port in ports:
                    if (health := await _exchange(port, [HEALTH])) != [200]:
                        tally.faults.append(f"the server is not there any more: {health}")
                tally.memory.append(sum(resident_mib(process.pid) for process, _ in running))
                print(f"round {number}: {tally.memory[-1]:.0f} MiB, {len(tally.faults)} faults", flush=True)
            ended = [process.poll() for process, _ in running]
            if ended != [None, None]:
                tally.faults.append(f"a server ended: {ended}")
        for log in Path(folder).glob("log*"):
            text = log.read_text()
            tally.tracebacks += text.count("Traceback")
            tally.errors += sum(" ERROR " in line for line in text.splitlines())
    tally.seconds = time.perf_counter() - begun
    return tally
