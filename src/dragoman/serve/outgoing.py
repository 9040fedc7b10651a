"""The output buffer of a connection."""

import asyncio
from collections import deque

_PIECE = 1 << 16


class Outgoing:
    """Writes to the transport one piece at a time as the client receives them, so that a large answer is not
    copied for a client that does not read it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._parts: deque[memoryview] = deque()
        self._writable = asyncio.Event()
        self._writable.set()

    @property
    def done(self) -> bool:
        return not self._parts and self._writable.is_set()

    def add(self, data: bytes) -> None:
        if data:
            self._parts.append(memoryview(data))
            self._write()

    def pause(self) -> None:
        """The client cannot receive more for now."""
        self._writable.clear()

    def resume(self) -> None:
        self._writable.set()
        self._write()

    def clear(self) -> None:
        """The client has disconnected. Release the tasks that wait for it."""
        self._parts.clear()
        self._writable.set()

    async def sent(self) -> None:
        while not self.done and not self._transport.is_closing():
            await self._writable.wait()

    def _write(self) -> None:
        while self._parts and self._writable.is_set() and not self._transport.is_closing():
            part = self._parts.popleft()
            if len(part) > _PIECE:
                self._parts.appendleft(part[_PIECE:])
            self._transport.write(part[:_PIECE])
