"""uvicorn's HTTP with what it lacks: a time by which a request has to be there, connections that are closed
only when nothing comes on them, and cheap refusals.

A server at its limit is asked most of all. There a request that came as a whole is answered before anything
takes it apart: no parser, no task, no application, and one line in the log for all of a second. Whatever is
out of the ordinary goes the usual way, where the gate refuses it.
"""

import asyncio
import contextlib
import json
import logging
import re
import selectors
import socket
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from dragoman.serve.gate import BEGUN, OPEN, SLOWDOWN, Gate
from dragoman.serve.limits import Limits
from dragoman.serve.refusal import Dialect, busy, dialect_of, shape

log = logging.getLogger("dragoman.serve")

_START = re.compile(rb"(GET|POST) (/[^ ?%\r\n]*)(?:\?[^ \r\n]*)? HTTP/1\.1\r\n")
SAID_EVERY_S = 1.0
_NO_HTTP = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n"
)
_UNUSUAL = (b"transfer-encoding", b"expect", b"upgrade")


def whole_request(data: bytes, most: int) -> tuple[str, str] | None:
    """Method and path, where these bytes are one ordinary request from beginning to end."""
    start = _START.match(data)
    head, end, body = data.partition(b"\r\n\r\n")
    if start is None or not end or len(head) > most:
        return None
    lines = head.split(b"\r\n")[1:]
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
    if len(fields) != len(lines) or any(name in fields for name in _UNUSUAL):
        return None
    if fields.get(b"connection", b"keep-alive").lower() != b"keep-alive":
        return None
    if fields.get(b"content-length", b"0") != b"%d" % len(body):
        return None
    return start[1].decode("ascii"), start[2].decode("latin-1")


class Shedder:
    """Ready answers for a gate that is full."""

    def __init__(self, gate: Gate, most: int) -> None:
        self._gate, self._most = gate, most
        self._answers: dict[Dialect, bytes] = {}
        self._unsaid = 0

    def answer(self, data: bytes) -> bytes | None:
        """What to send to who sent this; None where the gate itself has to see it."""
        if not self._gate.full or (asked := whole_request(data, self._most)) is None or asked[1] in OPEN:
            return None
        dialect = dialect_of(*asked)
        self._gate.metrics.request(dialect, 503, 0.0)
        if not self._unsaid:
            asyncio.get_running_loop().call_later(SAID_EVERY_S, self._say)
        self._unsaid += 1
        if dialect not in self._answers:
            self._answers[dialect] = _rendered(dialect, self._gate)
        return self._answers[dialect]

    def _say(self) -> None:
        log.info("%d requests refused at once with 503", self._unsaid)
        self._unsaid = 0


def _rendered(dialect: Dialect, gate: Gate) -> bytes:
    refusal = busy(SLOWDOWN, 503)
    body = json.dumps(shape(dialect, refusal.status, refusal.message)).encode("utf-8")
    headers = {"Content-Length": str(len(body)), "Content-Type": "application/json"}
    headers |= refusal.headers | dict(gate.headers)
    lines = [f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}"]
    lines += [f"{name.lower()}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Timed(H11Protocol):
    """A connection that knows since when it waits. uvicorn waits for ever for the rest of a head."""

    limits: Limits
    _deadline: asyncio.TimerHandle | None = None
    _begun = 0.0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.timeout_keep_alive = self.limits.idle_s
        self._await_head()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None:
            self._begun = self.loop.time()
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()  # a request is in work, and the gate looks at the clock
            self.scope.setdefault(BEGUN, self._begun)  # type: ignore[typeddict-item]
        elif self.at_a_beginning():  # it was the rest of a body that nobody wanted
            self.rest()
        elif self._deadline is None:
            self._await_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._forget()  # from here on the connection is idle

    def timeout_keep_alive_handler(self) -> None:
        """A request may have come that this loop has not read yet. To close now would lose it: the system
        answers what comes on a closed connection with a reset. And the client has to learn of the end at
        once: asyncio closes in its next turn, and a request that comes until then is lost as well."""
        if _unread(self.transport):
            self.rest()
            return
        with contextlib.suppress(OSError):
            self.transport.get_extra_info("socket").shutdown(socket.SHUT_WR)
        super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP. There is one answer: if the application has begun, it is its own, else it is
        this one, and the application is told that nobody listens. h11, asked by uvicorn, would raise where
        the request was half there: a body that breaks off after an answer, or after HEAD."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            told = json.dumps({"error": msg}).encode("utf-8")
            self.transport.write(_NO_HTTP % len(told) + told)
        if not self.transport.is_closing():
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def at_a_beginning(self) -> bool:
        """Nothing of a request is there yet, and none is being answered."""
        idle = self.cycle is None or self.cycle.response_complete
        return idle and self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]

    def rest(self) -> None:
        """Until the next request, for as long as an idle connection stays."""
        self._forget()
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def _await_head(self) -> None:
        self._begun = self.loop.time()
        self._deadline = self.loop.call_later(self.limits.receive_s, self._close)

    def _close(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.abort()

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def protocol_of(limits: Limits, gate: Gate) -> type[H11Protocol]:
    """Connections with these limits; what comes whole while the gate is full is answered at once."""
    shedder, own = Shedder(gate, limits.header_bytes), limits

    class Protocol(Timed):
        limits = own

        def data_received(self, data: bytes) -> None:
            if gate.full and self.at_a_beginning() and (answer := shedder.answer(data)) is not None:
                self.transport.write(answer)
                self.rest()
            else:
                super().data_received(data)

    return Protocol


def _unread(transport: asyncio.Transport) -> bool:
    """Whether something has come on this connection that nobody has read, be it its end."""
    try:
        with selectors.DefaultSelector() as watch:
            watch.register(transport.get_extra_info("socket"), selectors.EVENT_READ)
            return bool(watch.select(timeout=0))
    except (OSError, ValueError):  # it is closed
        return False
