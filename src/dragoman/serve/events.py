"""Server-sent events: an answer sent part by part."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

T = TypeVar("T")


async def events(parts: AsyncIterator[T], event: Callable[[T], str], end: str | None = None) -> Response:
    """A response of events. An error before the first part is answered like that of any request. `end` is the
    last event."""
    first = await anext(parts)
    return _Events(_told(first, parts, event, end))


async def _told(
    first: T, parts: AsyncIterator[T], event: Callable[[T], str], end: str | None
) -> AsyncGenerator[bytes, None]:
    try:
        yield _line(event(first))
        async for part in parts:
            yield _line(event(part))
        if end is not None:
            yield _line(end)
    finally:
        if isinstance(parts, AsyncGenerator):
            await parts.aclose()


def _line(data: str) -> bytes:
    return f"data: {data}\n\n".encode()


class _Events(Response):
    """Each event is sent when the client has received the one before."""

    def __init__(self, content: AsyncGenerator[bytes, None]) -> None:
        super().__init__(None, media_type="text/event-stream")
        del self.headers["content-length"]
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        try:
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            async for part in self._content:
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await self._content.aclose()
