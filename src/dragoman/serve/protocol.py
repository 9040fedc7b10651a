"""uvicorn's HTTP with what it lacks: a time by which a request has to be there, and cheap refusals.

A server at its limit is asked most of all. There a request that came as a whole is answered before anything
takes it apart: no parser, no task, no application, and one line in the log for all of a second. Whatever is
out of the ordinary goes the usual way, where the gate refuses it.
"""

import asyncio
import json
import logging
import re
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


def protocol_of(limits: Limits, gate: Gate) -> type[H11Protocol]:
    """uvicorn waits for ever for the rest of a request's head; this one closes the connection."""
    shedder = Shedder(gate, limits.header_bytes)

    class Protocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None
        _begun = 0.0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._await_head()

        def data_received(self, data: bytes) -> None:
            if gate.full and self._at_a_beginning() and (answer := shedder.answer(data)) is not None:
                self.transport.write(answer)
                self._forget()
                self._unset_keepalive_if_required()
                self.timeout_keep_alive_task = self.loop.call_later(
                    self.timeout_keep_alive, self.timeout_keep_alive_handler
                )
                return
            if self._deadline is None:
                self._begun = self.loop.time()
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._forget()  # a request is in work, and the gate looks at the clock
                self.scope.setdefault(BEGUN, self._begun)  # type: ignore[typeddict-item]
            elif self._deadline is None:
                self._await_head()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._forget()  # from here on it is uvicorn's keep-alive time

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

        def _at_a_beginning(self) -> bool:
            """Nothing of a request is there yet, and none is being answered."""
            idle = self.cycle is None or self.cycle.response_complete
            return idle and self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]

        def _await_head(self) -> None:
            self._begun = self.loop.time()
            self._deadline = self.loop.call_later(limits.receive_s, self._close)

        def _close(self) -> None:
            self._deadline = None
            if not self.transport.is_closing():
                self.transport.abort()

        def _forget(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return Protocol
