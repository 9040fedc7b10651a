"""Cheap refusals for a server at its limit.

A request that arrived completely is refused without a parser, a task or the application, and with one log
line per second for all of them. Any unusual request takes the normal path, and the gate refuses it.
"""

import json
import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from dragoman.serve.clients import SLOWDOWN
from dragoman.serve.gate import OPEN, Gate
from dragoman.serve.refusal import Dialect, busy, dialect_of, shape
from dragoman.serve.seldom import Seldom

_START = re.compile(rb"(GET|POST) (/[^ ?%\r\n]*)(?:\?[^ \r\n]*)? HTTP/1\.1\r\n")
SAID_EVERY_S = 1.0
_UNUSUAL = (b"transfer-encoding", b"expect", b"upgrade")


def whole_request(data: bytes, most: int) -> tuple[str, str] | None:
    """Method and path, if these bytes are exactly one ordinary request."""
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
    """Prepared refusals for a gate that is full."""

    def __init__(self, gate: Gate, most: int) -> None:
        self._gate, self._most = gate, most
        self._answers: dict[Dialect, bytes] = {}
        self._refused = Seldom("%d requests refused at once with 503", SAID_EVERY_S, logging.INFO)

    def answer(self, data: bytes, address: str) -> bytes | None:
        """The answer to this input, or None if the gate has to handle it."""
        if (
            not self._gate.full(address)
            or (asked := whole_request(data, self._most)) is None
            or asked[1] in OPEN
        ):
            return None
        dialect = dialect_of(*asked)
        self._gate.metrics.request(dialect, 503, 0.0)
        self._refused.note()
        if dialect not in self._answers:
            self._answers[dialect] = _rendered(dialect, self._gate)
        return self._answers[dialect]


def _rendered(dialect: Dialect, gate: Gate) -> bytes:
    refusal = busy(SLOWDOWN, 503)
    body = shape(dialect, refusal.status, refusal.message)
    return raw_answer(refusal.status, body, refusal.headers | dict(gate.headers))


def raw_answer(status: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> bytes:
    data = json.dumps(body).encode("utf-8")
    headers = {"Content-Length": str(len(data)), "Content-Type": "application/json"} | dict(headers)
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    lines += [f"{name.lower()}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + data
