"""What every request passes: size, time, key, and who is asking. It sees bytes, never what they say in a log.

headers ─ too large? ─ wrong host? ─ too many? ─ body ─ too slow? ─ key? ─▶ application
                                                                          │ the client leaves, or it takes
                                                                          ▼ too long: cancelled
"""

import asyncio
import ipaddress
import logging
import time
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serve.fields import read_fields
from dragoman.serve.keys import Keys
from dragoman.serve.limits import Limits
from dragoman.serve.metrics import Metrics
from dragoman.serve.refusal import Refusal, busy, dialect_of, shape

log = logging.getLogger("dragoman.serve")

OPEN = ("/", "/favicon.ico", "/health", "/api/v1/health", "/api/v1/ready")
"""What needs no key: the page, which holds nothing, and liveness and readiness."""
BEGUN = "dragoman.begun"
"""Where a scope says when the first byte of its request came, by the clock of the event loop."""
SLOWDOWN = "Slowdown: too many requests at once"
FAULT = "Internal error; see the log of the server"
_DOCUMENTS = ("/api/v1/documents", "/translate_file", "/v2/document")
_KEY_FIELDS = ("api_key", "auth_key", "key")
_ALLOWED = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, X-API-Key",
}
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Gate:
    def __init__(self, app: ASGIApp, limits: Limits, metrics: Metrics, keys: Keys | None) -> None:
        self._app, self._limits, self._keys = app, limits, keys
        self.metrics, self.active = metrics, 0
        self.headers = _HEADERS if keys is None else _HEADERS | _ALLOWED

    @property
    def full(self) -> bool:
        """One request more would be too many."""
        return self.active >= self._limits.requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        answer = _Answer(send, self.headers)
        begun = time.perf_counter()
        self.active += 1
        try:
            await self._serve(scope, receive, answer)
        except Refusal as refusal:
            await answer.refuse(scope, refusal)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # the text of an error may hold text of a request
            place = error.__traceback__
            while place is not None and place.tb_next is not None:
                place = place.tb_next
            where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else "?"
            log.error("%s at %s", type(error).__name__, where)
            await answer.refuse(scope, Refusal(500, FAULT))
        finally:
            self.active -= 1
            seconds = time.perf_counter() - begun
            dialect, status = dialect_of(scope["method"], scope["path"]), answer.status or 499
            self.metrics.request(dialect, status, seconds)
            log.info("%s %s %d %.0f ms", scope["method"], dialect, status, 1000 * seconds)

    async def _serve(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        path, document = scope["path"], scope["path"] in _DOCUMENTS
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        if self._keys is None and not _is_address(headers.get("host", "")):
            # A page of a stranger's name that is made to point to this machine could ask in a browser's name.
            raise Refusal(421, "Without keys this server answers to its address or localhost, not to a name")
        if self._keys is None and _is_elsewhere(headers.get("origin"), headers.get("host", "")):
            raise Refusal(403, "Without keys this server answers to no page but its own")
        if self._keys is not None and scope["method"] == "OPTIONS":
            await JSONResponse({})(scope, receive, answer)
            return
        if self.active > self._limits.requests and path not in OPEN:
            raise busy(SLOWDOWN, 503)
        most = self._limits.document_bytes if document else self._limits.body_bytes
        slow = self._limits.receive_s * (6 if document else 1)
        begun = scope.get(BEGUN, asyncio.get_running_loop().time())
        body = await _read(receive, headers, most, begun + slow)
        if body is None:
            return
        if self._keys is not None and path not in OPEN and not path.startswith("/download_file/"):
            key = await _key(Request(scope, _replay(body)), headers)
            if key not in self._keys:
                raise _locked(dialect_of(scope["method"], path), key is not None)
        seconds = self._limits.document_s if document else self._limits.request_s
        await self._run(scope, body, receive, answer, seconds)

    async def _run(
        self, scope: Scope, body: bytes, receive: Receive, answer: "_Answer", seconds: float
    ) -> None:
        """Who leaves, or takes too long, is cancelled here; whoever cancels from outside is let through."""
        task = asyncio.current_task()
        assert task is not None
        left = asyncio.ensure_future(_until_left(receive))
        left.add_done_callback(lambda gone: None if gone.cancelled() or answer.ended else task.cancel())
        try:
            async with asyncio.timeout(seconds):
                await self._app(scope, _replay(body), answer)
        except TimeoutError:
            raise busy("The translation took too long", 503) from None
        except asyncio.CancelledError:
            if not left.done() or task.uncancel():
                raise
        finally:
            left.cancel()


class _Answer:
    """Sends a response with the headers that all have, and knows whether one has begun or ended."""

    def __init__(self, send: Send, headers: Mapping[str, str]) -> None:
        self._send, self._headers = send, headers
        self.status: int | None = None
        self.ended = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = {name.lower() for name, _ in message.get("headers", ())}
            extra = [
                (name.lower().encode(), value.encode())
                for name, value in self._headers.items()
                if name.lower().encode() not in own
            ]
            message = {**message, "headers": [*message.get("headers", ()), *extra]}
        else:
            self.ended = not message.get("more_body", False)
        await self._send(message)

    async def refuse(self, scope: Scope, refusal: Refusal) -> None:
        if self.status is None:
            await refused(scope, refusal)(scope, _nothing, self)


def refused(scope: Scope, refusal: Refusal) -> JSONResponse:
    dialect = dialect_of(scope["method"], scope["path"])
    body = shape(dialect, refusal.status, refusal.message)
    close = {"Connection": "close"} if refusal.status in (408, 413) else {}
    return JSONResponse(body, refusal.status, refusal.headers | close)


async def _read(receive: Receive, headers: Mapping[str, str], most: int, until: float) -> bytes | None:
    """The whole body; None where the client has left. `until` is a time of the event loop."""
    told = headers.get("content-length", "0")
    if told.isascii() and told.isdigit() and int(told[:18]) > most:
        raise Refusal(413, f"Invalid request: more than {most} bytes")
    parts: list[bytes] = []
    size, more = 0, True
    try:
        async with asyncio.timeout_at(until):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                more = message.get("more_body", False)
                if size > most:
                    raise Refusal(413, f"Invalid request: more than {most} bytes")
    except TimeoutError:
        raise Refusal(408, "The request took too long to come") from None
    return b"".join(parts)


def _replay(body: bytes) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()  # who leaves is noticed by the gate itself
        raise AssertionError

    return receive


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _key(request: Request, headers: Mapping[str, str]) -> Any:
    """The key that a client gives, wherever its dialect puts it; None if it gives none."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() in ("deepl-auth-key", "bearer") and key.strip():
        return key.strip()
    if "x-api-key" in headers:
        return headers["x-api-key"]
    fields = await read_fields(request)
    return next((fields.get(name) for name in _KEY_FIELDS if fields.get(name)), None)


def _locked(dialect: str, given: bool) -> Refusal:
    if dialect == "libretranslate":
        missing = "Please contact the server operator to get an API key"
        return Refusal(403, "Invalid API key") if given else Refusal(400, missing)
    if dialect == "own":
        return Refusal(
            401, "This needs a key; see the page or the documentation", {"WWW-Authenticate": "Bearer"}
        )
    return Refusal(403, "Invalid API key")


def _is_elsewhere(origin: str | None, host: str) -> bool:
    """Whether a browser asks for a page of another server: it says so, and could send forms unasked."""
    return origin is not None and origin.partition("://")[2].lower() != host.strip().lower()


def _is_address(host: str) -> bool:
    """Whether a Host header is an IP address or localhost, with or without a port."""
    name = host.strip().lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
