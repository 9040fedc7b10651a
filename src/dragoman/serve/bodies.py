"""Request bodies: limits on how many are being received, and on the memory of all of them.

A slow client may take its time until too many bodies are open. Then the body that has been open longest is
refused, never the newest one, so a crowd of slow clients cannot lock out a fast one. Bodies of requests with
a valid key in the head are counted separately.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from starlette.types import Receive

from dragoman.serve.limits import Limits
from dragoman.serve.refusal import Refusal, busy


@dataclass(eq=False)
class Body:
    client: str
    trusted: bool
    """Whether the head had a valid key."""
    data: bytearray = field(default_factory=bytearray)
    coming: asyncio.Timeout | None = None
    refused: bool = False


class Bodies:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._coming: dict[Body, None] = {}
        self.bytes = 0

    @property
    def coming(self) -> int:
        return len(self._coming)

    @contextlib.contextmanager
    def one(self, client: str, trusted: bool) -> Iterator[Body]:
        """A body that is counted until its request is done."""
        body = Body(client, trusted)
        try:
            yield body
        finally:
            self._forget(body)

    async def read(
        self, body: Body, receive: Receive, headers: Mapping[str, str], most: int, until: float
    ) -> bool:
        """Read the whole body. Returns false if the client has disconnected. `until` is a time of the event
        loop."""
        told = headers.get("content-length", "0")
        if told.isascii() and told.isdigit() and int(told[:18]) > most:
            raise _too_large(most)
        more = True
        try:
            async with asyncio.timeout_at(until) as body.coming:
                while more and not body.refused:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return False
                    part, more = message.get("body", b""), message.get("more_body", False)
                    if len(body.data) + len(part) > most:
                        raise _too_large(most)
                    self._add(body, part)
                    if more and body not in self._coming:
                        self._let_in(body)
        except TimeoutError:
            if not body.refused:
                raise Refusal(408, "The request took too long to come") from None
        finally:
            self._coming.pop(body, None)
        if body.refused:
            raise _too_many()
        return True

    def _let_in(self, body: Body) -> None:
        self._coming[body] = None
        own = [one for one in self._coming if one.trusted == body.trusted]
        same = [one for one in own if one.client == body.client]
        if len(same) > self._limits.bodies_per_client:
            self._refuse(same[0])
        elif len(own) > self._limits.bodies:
            self._refuse(own[0])

    def _add(self, body: Body, part: bytes) -> None:
        """Append a part. If memory runs out, bodies without a verified key are refused, oldest first."""
        while self.bytes + len(part) > self._limits.memory_bytes:
            oldest = next((one for one in self._coming if not one.trusted), None)
            if oldest is None or oldest is body:
                raise _too_many()
            self._refuse(oldest)
        self.bytes += len(part)
        body.data += part

    def _refuse(self, body: Body) -> None:
        """Refuse a body. Its memory is freed at once, and its task sees a timeout."""
        del self._coming[body]
        self._forget(body)
        body.refused = True
        assert body.coming is not None
        body.coming.reschedule(asyncio.get_running_loop().time())

    def _forget(self, body: Body) -> None:
        self.bytes -= len(body.data)
        body.data.clear()


def _too_large(most: int) -> Refusal:
    return Refusal(413, f"Invalid request: more than {most} bytes")


def _too_many() -> Refusal:
    return busy("Slowdown: too many requests are being sent at once", 503)
