"""One request and its answer, as an ASGI exchange."""

import asyncio
import logging
import time
from email.utils import formatdate
from typing import Protocol
from urllib.parse import unquote

import h11
from starlette.types import ASGIApp, Message, Scope

from dragoman.serve.gate import BEGUN, place_of

log = logging.getLogger("dragoman.serve")

_HIGH_WATER = 1 << 16
_SMALL = 1 << 16
_CLOSE = (b"connection", b"close")
Address = tuple[str, int] | None


class Line(Protocol):
    """What an exchange needs from its connection."""

    @property
    def closing(self) -> bool:
        """Whether the connection closes after this answer."""
        ...

    def write(self, data: bytes) -> None: ...
    async def sent(self) -> None:
        """Wait until the client has received nearly everything that was written, or has disconnected."""
        ...

    def body_taken(self) -> None:
        """Signal that there is room for more of the body."""
        ...

    def answered(self) -> None: ...
    def abort(self) -> None: ...


class Exchange:
    def __init__(self, line: Line, http: h11.Connection, scope: Scope) -> None:
        self._line, self._http, self.scope = line, http, scope
        self._empty = scope["method"] == "HEAD"
        self._body = bytearray()
        self._whole = False
        self._news = asyncio.Event()
        self._start: Message | None = None
        self.left = self.started = self.ended = False

    @property
    def body_full(self) -> bool:
        """Whether more of the body is buffered than the application has read."""
        return len(self._body) > _HIGH_WATER

    def feed(self, data: bytes | bytearray) -> None:
        self._body += data
        self._news.set()

    def end_of_body(self) -> None:
        self._whole = True
        self._news.set()

    def leave(self) -> None:
        """Note that the client has disconnected."""
        self.left = True
        self._news.set()

    async def run(self, app: ASGIApp) -> None:
        try:
            await app(self.scope, self.receive, self.send)
        except Exception as error:
            log.error("%s at %s", type(error).__name__, place_of(error))
        finally:
            if not (self.ended or self.left):
                self._line.abort()

    async def receive(self) -> Message:
        if not self.started and self._http.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
            self._line.write(self._http.send(go_on) or b"")
        if not (self.left or self.ended):
            self._line.body_taken()
            await self._news.wait()
            self._news.clear()
        if self.left or self.ended:
            return {"type": "http.disconnect"}
        body, self._body = bytes(self._body), bytearray()
        return {"type": "http.request", "body": body, "more_body": not self._whole}

    async def send(self, message: Message) -> None:
        if self.left:
            return
        if message["type"] == "http.response.start":
            self._start = message
            return
        head = b"" if self._start is None else self._head(self._start)
        self._start, more = None, message.get("more_body", False)
        body = b"" if self._empty else self._http.send(h11.Data(data=message.get("body", b""))) or b""
        end = b"" if more else self._http.send(h11.EndOfMessage()) or b""
        if len(body) < _SMALL:
            self._line.write(head + body + end)
        else:
            for part in (head, body, end):
                self._line.write(part)
        if more:
            await self._line.sent()
        else:
            self.ended = True
            self._news.set()
            self._line.answered()

    def _head(self, start: Message) -> bytes:
        headers = [(b"date", formatdate(time.time(), usegmt=True).encode()), *start.get("headers", ())]
        if (self._line.closing or self._http.they_are_waiting_for_100_continue) and _CLOSE not in headers:
            headers.append(_CLOSE)
        self.started = True
        return self._http.send(h11.Response(status_code=start["status"], headers=headers)) or b""


def scope_of(head: h11.Request, client: Address, server: Address, begun: float) -> Scope:
    path, _, query = head.target.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": head.http_version.decode("ascii"),
        "method": head.method.decode("ascii"),
        "scheme": "http",
        "path": unquote(path.decode("ascii")),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in head.headers],
        "client": client,
        "server": server,
        BEGUN: begun,
    }
