"""Bodies of requests: how many may be on the way, and how much memory all of them may take.

Whoever sends slowly may do so until there are too many. Then the one that has been on the way for longest is
refused, and never the newcomer: a crowd that sends a byte a second cannot keep anybody out who sends at once.
Bodies of requests whose key was in the head, and right, are counted apart from the others.
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
    """Its key was in the head, and is a right one."""
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
        """A body that counts until its request is done."""
        body = Body(client, trusted)
        try:
            yield body
        finally:
            self._forget(body)

    async def read(
        self, body: Body, receive: Receive, headers: Mapping[str, str], most: int, until: float
    ) -> bool:
        """Until all of it is there; false where the client has left. `until` is a time of the event loop."""
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
        """Where there is no memory left, bodies without a checked key make room, the oldest first."""
        while self.bytes + len(part) > self._limits.memory_bytes:
            oldest = next((one for one in self._coming if not one.trusted), None)
            if oldest is None or oldest is body:
                raise _too_many()
            self._refuse(oldest)
        self.bytes += len(part)
        body.data += part

    def _refuse(self, body: Body) -> None:
        """Its memory is free at once. Its task learns of it as if its time were over."""
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
