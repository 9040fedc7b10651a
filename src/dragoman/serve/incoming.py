"""Input of a connection, parsed by h11, with additional size limits."""

from typing import Any

import h11

from dragoman.serve.limits import Limits

_PIECE = 1 << 14
_SMALL_CHUNKS, _CHUNK = 256, 1 << 10
"""Number of chunks that are always allowed, and bytes of content for each further chunk. Small chunks are
expensive to parse."""
_FRAMES, _FRAMES_SHARE = 1 << 16, 16
"""Bytes of a chunked body that may be framing: a constant, and a share of the content."""


class Malformed(Exception):
    """Input that is not HTTP, or exceeds a limit."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class Incoming:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.http = h11.Connection(h11.SERVER, limits.header_bytes)
        self._unparsed = bytearray()
        self._head_bytes = self._body_bytes = self._wire_bytes = self._chunks = 0

    @property
    def begun(self) -> bool:
        """Whether part of the next request has arrived."""
        return bool(self._head_bytes or self._unparsed)

    def add(self, data: bytes) -> None:
        self._unparsed += data

    def clear(self) -> None:
        self._unparsed.clear()

    def next_event(self) -> Any:
        """The next h11 event: a head, part of a body, its end, NEED_DATA, or PAUSED until the request is
        answered."""
        try:
            event = self.http.next_event()
            while event is h11.NEED_DATA and self._unparsed:
                self._feed()
                event = self.http.next_event()
        except h11.RemoteProtocolError as error:
            status = 431 if error.error_status_hint == 431 else 400
            raise Malformed(status, "Invalid HTTP request received.") from None
        if isinstance(event, h11.Request):
            self._check_head(event)
        elif isinstance(event, h11.Data):
            self._check_part(event)
        return event

    def next_request(self) -> None:
        if self.http.our_state is h11.DONE:
            self.http.start_next_cycle()
        self._head_bytes = len(self.http.trailing_data[0])

    def _feed(self) -> None:
        """Pass a piece of input to h11. While a head is read, no more than its size limit, so that the limit
        also holds for a head that arrives at once."""
        size = min(_PIECE, self._limits.header_bytes)
        heading = self.http.their_state is h11.IDLE
        if heading:
            size = self._limits.header_bytes - self._head_bytes
            if size <= 0:
                raise Malformed(431, f"The head of a request has at most {self._limits.header_bytes} bytes.")
        piece = bytes(self._unparsed[:size])
        del self._unparsed[:size]
        if heading:
            self._head_bytes += len(piece)
        else:
            self._wire_bytes += len(piece)
        self.http.receive_data(piece)

    def _check_head(self, head: h11.Request) -> None:
        if len(head.headers) > self._limits.headers:
            raise Malformed(431, f"A request has at most {self._limits.headers} headers.")
        self._wire_bytes = len(self.http.trailing_data[0])
        self._body_bytes = self._chunks = 0

    def _check_part(self, part: h11.Data) -> None:
        self._chunks += part.chunk_start
        self._body_bytes += len(part.data)
        if self._chunks > _SMALL_CHUNKS + self._body_bytes // _CHUNK:
            raise Malformed(400, "The body comes in too many small chunks.")
        if self._wire_bytes - self._body_bytes > _FRAMES + self._body_bytes // _FRAMES_SHARE:
            raise Malformed(400, "The chunks of the body have too much around them.")
