"""Checks that every request passes: size, time limit, key and client. It logs no contents of requests.

headers ─ wrong host? ─ wrong key? ─ too many? ─ body ─ too large, slow? ─ key? ─ place ─▶ application
                                                                             │ the client leaves, or it takes
                                                                             ▼ too long: cancelled
"""

import asyncio
import ipaddress
import logging
import re
import time
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serve.bodies import Bodies
from dragoman.serve.clients import SLOWDOWN, Places, address_of
from dragoman.serve.fields import read_fields
from dragoman.serve.keys import Guesses, Keys
from dragoman.serve.limits import Limits
from dragoman.serve.metrics import Metrics
from dragoman.serve.refusal import Refusal, busy, dialect_of, shape

log = logging.getLogger("dragoman.serve")

OPEN = ("/", "/docs", "/favicon.ico", "/health", "/api/v1/health", "/api/v1/ready")
"""Paths that need no key: the pages, which contain no data, and the liveness and readiness checks."""
BEGUN = "dragoman.begun"
"""Key of the scope that holds the time of the request's first byte, on the clock of the event loop."""
FAULT = "Internal error; see the log of the server"
_DOCUMENTS = ("/api/v1/documents", "/translate_file", "/v2/document")
_KEY_FIELDS = ("api_key", "auth_key", "key")
_PART = 1 << 14
_HOST = re.compile(r"(?:\[(?P<inside>[0-9a-f:.]+)\]|(?P<name>[^\[\]:]+))(?::[0-9]*)?")
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
        self._app, self.limits, self._keys = app, limits, keys
        self.metrics = metrics
        self.headers = _HEADERS if keys is None else _HEADERS | _ALLOWED
        self.places = Places(limits.requests, limits.requests_per_client)
        self.bodies = Bodies(limits)
        self._guesses = Guesses(limits.connections // 4)

    def full(self, address: str) -> bool:
        """Whether one more request from this address would be refused, whatever its contents."""
        return self.places.full("" if self._keys else address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        answer = _Answer(send, self.headers, scope["method"] == "HEAD")
        begun = time.perf_counter()
        try:
            await self._serve(scope, receive, answer)
        except Refusal as refusal:
            await answer.refuse(scope, refusal)
        except Exception as error:
            log.error("%s at %s", type(error).__name__, place_of(error))
            await answer.refuse(scope, Refusal(500, FAULT))
        finally:
            seconds = time.perf_counter() - begun
            dialect, status = dialect_of(scope["method"], scope["path"]), answer.status or 499
            self.metrics.request(dialect, status, seconds)
            log.info("%s %s %d %.0f ms", scope["method"], dialect, status, 1000 * seconds)

    async def _serve(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        path, address = scope["path"], address_of(scope)
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        if self._keys is None:
            _check_page(headers, path)
        elif scope["method"] == "OPTIONS":
            await JSONResponse({})(scope, receive, answer)
            return
        needs_key = self._keys is not None and path not in OPEN and not path.startswith("/download_file/")
        named = await self._named(scope, headers, address) if needs_key else None
        if path not in OPEN and self.places.full(named or ("" if needs_key else address)):
            raise busy(SLOWDOWN, 503)
        form = headers.get("content-type", "").lower().startswith("multipart/form-data")
        document = path in _DOCUMENTS and form
        most = self.limits.document_bytes if document else self.limits.body_bytes
        slow = self.limits.receive_s * (6 if document else 1)
        begun = scope.get(BEGUN, asyncio.get_running_loop().time())
        with self.bodies.one(named or address, named is not None) as body:
            if not await self.bodies.read(body, receive, headers, most, begun + slow):
                return
            if needs_key and named is None:
                fields = await read_fields(Request(scope, _replay(body.data)))
                key = next((fields.get(name) for name in _KEY_FIELDS if fields.get(name)), None)
                named = await self._checked(key, scope, address)
            if path in OPEN:
                await self._run(scope, body.data, receive, answer, self.limits.request_s)
                return
            with self.places.one(named or address):
                seconds = self.limits.document_s if path in _DOCUMENTS else self.limits.request_s
                await self._run(scope, body.data, receive, answer, seconds)

    async def _named(self, scope: Scope, headers: Mapping[str, str], address: str) -> str | None:
        """The client, if the head identifies it. A key in a header must be valid; an invalid one in the query
        string may be corrected by a field of the body."""
        assert self._keys is not None
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() in ("deepl-auth-key", "bearer") and key.strip():
            return await self._checked(key.strip(), scope, address)
        if "x-api-key" in headers:
            return await self._checked(headers["x-api-key"], scope, address)
        query = QueryParams(scope["query_string"])
        return next((name for field in _KEY_FIELDS if (name := self._keys.name_of(query.get(field)))), None)

    async def _checked(self, key: Any, scope: Scope, address: str) -> str:
        """The name of the client with this key. A wrong key is refused, after a delay if there were many."""
        assert self._keys is not None
        if (name := self._keys.name_of(key)) is not None:
            return name
        if key is not None:
            self.metrics.count("dragoman_wrong_keys_total")
            await self._guesses.wrong(address)
        raise _locked(dialect_of(scope["method"], scope["path"]), key is not None)

    async def _run(
        self, scope: Scope, body: bytearray, receive: Receive, answer: "_Answer", seconds: float
    ) -> None:
        """Run the application. A client that disconnects or a timeout cancels it here; a cancellation from
        outside is passed on."""
        task = asyncio.current_task()
        assert task is not None
        left = asyncio.ensure_future(_until_left(receive))
        left.add_done_callback(lambda gone: None if gone.cancelled() or answer.ended else task.cancel())
        if scope["method"] == "HEAD":  # the answer to GET, without its body
            scope = {**scope, "method": "GET"}
        try:
            async with asyncio.timeout(seconds) as answer.limit:
                await self._app(scope, _replay(body), answer)
        except TimeoutError:
            raise busy("The answer took too long", 503) from None
        except asyncio.CancelledError:
            if not left.done() or task.uncancel():
                raise
        finally:
            answer.limit = None
            left.cancel()


class _Answer:
    """Sends a response with the common headers, and records whether it has begun or ended."""

    def __init__(self, send: Send, headers: Mapping[str, str], empty: bool) -> None:
        self._send, self._headers, self._empty = send, headers, empty
        self.status: int | None = None
        self.ended = False
        self.limit: asyncio.Timeout | None = None
        """Timeout of the work. Sending has its own timeout, which the connection enforces."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.limit is not None and not self.limit.expired():
                self.limit.reschedule(None)
            own = {name.lower() for name, _ in message.get("headers", ())}
            extra = [
                (name.lower().encode(), value.encode())
                for name, value in self._headers.items()
                if name.lower().encode() not in own
            ]
            message = {**message, "headers": [*message.get("headers", ()), *extra]}
        else:
            self.ended = not message.get("more_body", False)
            if self._empty:
                message = {**message, "body": b""}
        await self._send(message)

    async def refuse(self, scope: Scope, refusal: Refusal) -> None:
        if self.status is None:
            await refused(scope, refusal)(scope, _nothing, self)


def refused(scope: Scope, refusal: Refusal) -> JSONResponse:
    dialect = dialect_of(scope["method"], scope["path"])
    body = shape(dialect, refusal.status, refusal.message)
    close = {"Connection": "close"} if refusal.status in (408, 413) else {}
    return JSONResponse(body, refusal.status, refusal.headers | close)


def _replay(body: bytearray) -> Receive:
    """Replay a body in parts, yielding to the event loop in between, because forms are parsed as they
    arrive."""
    parts = iter(range(0, max(1, len(body)), _PART))

    async def receive() -> Message:
        for at in parts:
            if at:
                await asyncio.sleep(0)
            more = at + _PART < len(body)
            return {"type": "http.request", "body": bytes(body[at : at + _PART]), "more_body": more}
        await asyncio.Event().wait()  # the gate itself notices a disconnect
        raise AssertionError

    return receive


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _locked(dialect: str, given: bool) -> Refusal:
    if dialect == "libretranslate":
        missing = "Please contact the server operator to get an API key"
        return Refusal(403, "Invalid API key") if given else Refusal(400, missing)
    if dialect in ("own", "openai"):
        told = "The API key is wrong" if given else "An API key is missing: Authorization: Bearer KEY"
        return Refusal(401, told, {"WWW-Authenticate": "Bearer"})
    return Refusal(403, "Invalid API key")


def place_of(error: BaseException) -> str:
    """File and line where an error was raised. The message may contain text of a request, so it is not
    logged."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else "?"


def _check_page(headers: Mapping[str, str], path: str) -> None:
    """Without keys, only the server's own page may send requests from a browser. Links to the page may be
    followed from anywhere."""
    host = headers.get("host", "")
    if not _is_address(host):
        # DNS rebinding: a page under another host name that resolves to this machine must not get answers.
        raise Refusal(421, "Without keys this server answers to its address or localhost, not to a name")
    elsewhere = headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and path not in OPEN
    if elsewhere or _is_elsewhere(headers.get("origin"), host):
        raise Refusal(403, "Without keys this server answers to no page but its own")


def _is_elsewhere(origin: str | None, host: str) -> bool:
    """Whether a browser request comes from a page of another server. Such a page could submit forms
    unnoticed."""
    return origin is not None and origin.partition("://")[2].lower() != host.strip().lower()


def _is_address(host: str) -> bool:
    """Whether a Host header is an IP address or localhost, with or without a port."""
    found = _HOST.fullmatch(host.strip().lower())
    if found is None:
        return False
    name = found["inside"] or found["name"]
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
