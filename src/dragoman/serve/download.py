"""Large answers, sent in pieces, so that a client that does not read them holds only one piece in memory."""

from collections.abc import Callable, Mapping
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

PIECE = 64 << 10


class InPieces(Response):
    """Each piece is sent when the client has received the one before. `ended` is called after the last piece,
    or when the client has disconnected."""

    def __init__(
        self,
        content: bytes,
        media_type: str,
        headers: Mapping[str, str] | None = None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        size = {"Content-Length": str(len(content))}
        super().__init__(None, headers={**(headers or {}), **size}, media_type=media_type)
        self._content, self._ended = content, ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        try:
            start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            await send(start)
            for at in range(0, max(1, len(self._content)), PIECE):
                piece = self._content[at : at + PIECE]
                more = at + PIECE < len(self._content)
                await send({"type": "http.response.body", "body": piece, "more_body": more})
        finally:
            self._ended()


class Download(InPieces):
    """A file to save. Its name may contain any characters, and the browser never displays the content."""

    def __init__(
        self,
        content: bytes,
        name: str,
        headers: Mapping[str, str] | None = None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        own = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}
        super().__init__(content, "application/octet-stream", {**(headers or {}), **own}, ended)
