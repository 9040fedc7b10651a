"""Is anything that a stranger may send a fault of the server? Target: of 20,000 requests none.

    python benchmarks/fuzz_serve.py                      20,000 within the process, 4,000 over sockets
    python benchmarks/fuzz_serve.py --count 500 --live 100 --seed 7
    python benchmarks/fuzz_serve.py --minutes 60         and for an hour to two server processes

`rubbish.py` makes them, and `fuzz_long.py` sends them for longer. The server is the real one with a tiny
model of random weights, in three directions and one by a pivot, a fifth of the requests at a server with
keys. A fault is a status of 500 or more (an overloaded server may say 503), an error that is not a JSON
object, an exception that escapes, a line in the log that is an error or holds a traceback, and a connection
that is neither answered nor closed.
"""

import argparse
import asyncio
import json
import logging
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.types import Message, Scope

from common import write_table
from dragoman.decode.search.config import SearchConfig
from dragoman.serve.app import Options, build
from dragoman.serve.gate import Gate
from dragoman.serve.keys import Keys
from dragoman.serve.limits import Limits
from dragoman.serve.memory import TranslationMemory
from dragoman.serve.run import listen
from dragoman.serve.server import Server
from dragoman.serve.service import Served, Service
from fuzz_long import KEY, run_for
from odd_inputs import tiny_translator
from rubbish import Rubbish, Sent

LIMITS = Limits(receive_s=2, glossaries=50)
PATIENCE_S = 30.0
AT_ONCE = 8


@dataclass
class Found:
    """What came of the requests of each kind, and every fault."""

    statuses: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    faults: list[str] = field(default_factory=list)

    def note(self, sent: Sent, status: int, body: bytes) -> None:
        self.statuses[sent.kind][status] += 1
        if status >= 500 and status != 503:
            self.fault(sent, f"{status} {body[:200]!r}")
        elif status >= 400 and sent.method != "HEAD" and sent.raw is None and not _is_object(body):
            self.fault(sent, f"{status} without a JSON object: {body[:200]!r}")

    def fault(self, sent: Sent, what: str) -> None:
        self.faults.append(f"{what}: {sent.wire[:500]!r}")


class Listener(logging.Handler):
    """Lines in the log that no request may cause."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.faults: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        told = record.getMessage()
        if record.levelno >= logging.ERROR or record.exc_info or "Traceback" in told:
            where = traceback.format_exception(*record.exc_info)[-3:] if record.exc_info else []
            self.faults.append(f"log: {record.name} {told[:300]} {' '.join(where)}")


def gates() -> tuple[Gate, Gate]:
    """One without keys and one with them, each with a service of its own."""
    translator = tiny_translator()
    translator.search = SearchConfig(beam=2, max_ratio=0.5, max_extra=4)
    pairs = [("en", "de"), ("de", "en"), ("fr", "en")]
    memories = {("en", "de"): TranslationMemory([("Hello.", "Hallo."), ("Hello you.", "Hallo du.")])}

    def service() -> Service:
        served = [
            Served(pair, translator, insists=pair == ("de", "en"), name="-".join(pair)) for pair in pairs
        ]
        return Service(served, pivot="en", memories=memories, limits=LIMITS)

    return build(service()), build(service(), Options(keys=Keys([KEY])))


async def in_process(gate: Gate, sent: Sent) -> tuple[int, bytes]:
    """As a server would call it; the body comes in two parts."""
    path, _, query = sent.path.partition("?")
    half = len(sent.body) // 2
    messages: list[Message] = [
        {"type": "http.request", "body": sent.body[:half], "more_body": True},
        {"type": "http.request", "body": sent.body[half:], "more_body": False},
    ]
    headers = [("Host", "localhost"), *sent.headers]
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": sent.method,
        "scheme": "http",
        "path": path.encode("latin-1", "replace").decode("utf-8", "replace"),
        "raw_path": path.encode("latin-1", "replace"),
        "query_string": query.encode("latin-1", "replace"),
        "root_path": "",
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 9),
        "headers": [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers],
    }
    answer: dict[str, Any] = {"status": 0, "body": b""}

    async def receive() -> Message:
        if messages:
            return messages.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        answer["status"] = message.get("status", answer["status"])
        answer["body"] += message.get("body", b"")

    await gate(scope, receive, send)
    return answer["status"], answer["body"]


async def over_a_socket(port: int, sent: Sent) -> tuple[int, bytes]:
    """0 where the connection was closed without an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent.wire)
        if sent.raw is not None:  # what is not whole waits for more until it is told that none will come
            writer.write_eof()
        answer = await reader.read()
    except ConnectionError:
        answer = b""
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    if head.startswith(b"HTTP/1.1 100"):  # go on, and then the answer
        head, _, body = body.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head.startswith(b"HTTP/") else 0, body


async def ask(found: Found, sent: Sent, how: Any) -> None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            status, body = await how
    except TimeoutError:
        found.fault(sent, f"nothing for {PATIENCE_S:g} s")
    except Exception as error:
        found.fault(sent, f"{type(error).__name__}: {error}")
    else:
        found.note(sent, status, body)


def with_key(sent: Sent, number: int) -> Sent:
    """Every other request at the server with keys has one."""
    return replace(sent, headers=(("X-API-Key", KEY), *sent.headers)) if number % 2 else sent


async def fuzz(gate: Gate, locked: Gate, rubbish: Rubbish, count: int) -> Found:
    """Within the process, a few at once."""
    found = Found()
    for begin in range(0, count, AT_ONCE):
        group: list[Any] = []
        for number in range(begin, min(begin + AT_ONCE, count)):
            sent = rubbish.request()
            if number % 5:
                group.append(ask(found, sent, in_process(gate, sent)))
            else:
                sent = with_key(sent, number)
                group.append(ask(found, sent, in_process(locked, sent)))
        await asyncio.gather(*group)
    return found


async def fuzz_live(gate: Gate, limits: Limits, rubbish: Rubbish, count: int) -> Found:
    """Over sockets, with bytes that are no HTTP at all. At the end the server has to be there still."""
    found = Found()
    server = Server(gate, limits)
    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    serving = asyncio.create_task(server.run(listening))
    for begin in range(0, count, AT_ONCE):
        group = [rubbish.on_the_wire() for _ in range(min(AT_ONCE, count - begin))]
        await asyncio.gather(*(ask(found, sent, over_a_socket(port, sent)) for sent in group))
    last = Sent("", "GET", "/health")
    await ask(found, last, over_a_socket(port, last))
    if found.statuses.pop("")[200] != 1:
        found.fault(last, "the server is not there any more")
    server.stop()
    await serving
    return found


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False


def rows_of(where: str, statuses: Mapping[str, Counter[int]], lost: Mapping[str, int]) -> list[list[str]]:
    rows: list[list[str]] = []
    for kind in sorted({*statuses, *lost}):
        classes: Counter[str] = Counter()
        for status, count in statuses.get(kind, {}).items():
            classes["503" if status == 503 else f"{status // 100}xx" if status else "closed"] += count
        counts = [str(classes[name]) for name in ("2xx", "4xx", "503", "5xx", "closed")]
        rows.append([where, kind, str(classes.total() + lost.get(kind, 0)), *counts, str(lost.get(kind, 0))])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--live", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=0, help="For so long to servers of their own, too.")
    arguments = parser.parse_args()
    listener = Listener()
    logging.basicConfig(level=logging.INFO, handlers=[listener])
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    gate, locked = gates()
    begun = time.perf_counter()
    inside = asyncio.run(fuzz(gate, locked, Rubbish(arguments.seed), arguments.count))
    gate, _ = gates()
    live = asyncio.run(fuzz_live(gate, LIMITS, Rubbish(arguments.seed + 1), arguments.live))
    rows = [*rows_of("in process", inside.statuses, {}), *rows_of("sockets", live.statuses, {})]
    faults = [*inside.faults, *live.faults, *listener.faults]
    notes = f"{arguments.count:,} requests in the process, {arguments.live:,} over sockets, seed"
    notes += (
        f" {arguments.seed}: {len(faults)} faults, {len(listener.faults)} of them errors or tracebacks in"
    )
    notes += f" the log, {time.perf_counter() - begun:.0f} s."
    if arguments.minutes:
        tally = asyncio.run(run_for(arguments.minutes, arguments.seed))
        rows += rows_of("long run", tally.statuses, tally.lost)
        faults += tally.faults
        count = sum(one.total() for one in tally.statuses.values()) + tally.lost.total()
        notes += f" Long run, two server processes, {tally.seconds / 60:.0f} minutes: {count:,} requests,"
        notes += (
            f" {len(tally.faults)} faults, {tally.tracebacks} tracebacks and {tally.errors} errors in the"
        )
        notes += f" logs, {tally.lost.total()} lost; memory of both {tally.memory[0]:.0f} MiB at first,"
        notes += f" {tally.memory[-1]:.0f} at the end, {tally.growth():+.0f} since a tenth of the time."
    for fault in faults[:40]:
        print(fault)
    write_table(
        "fuzz_serve",
        "Requests that nobody means",
        ["where", "what", "requests", "2xx", "4xx", "503", "5xx", "closed", "lost"],
        rows,
        f"{notes} «closed»: without an answer, as for half a request; «lost»: neither answered nor closed.",
        keep=arguments.count >= 20_000,
    )


if __name__ == "__main__":
    main()
