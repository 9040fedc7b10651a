"""HTTP/1.1 on one connection: h11 parses and writes it; this module enforces sizes and timeouts, and closes.

    idle ─ first byte ─▶ head ─▶ body ─▶ work ─▶ sending ─▶ idle …      or ─▶ ending, and closed

Every stage but work has a timeout (work has one in the gate), the head has a size limit, and input is handled
in small steps, so that no client can block the event loop for long.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any

import h11

from dragoman.serve.clients import network_of
from dragoman.serve.connections import SAID_EVERY_S, Connections, ConnectionStage
from dragoman.serve.exchange import Exchange, scope_of
from dragoman.serve.gate import Gate
from dragoman.serve.incoming import Incoming, Malformed
from dragoman.serve.limits import Limits
from dragoman.serve.outgoing import Outgoing
from dragoman.serve.seldom import Seldom
from dragoman.serve.shed import Shedder, raw_answer
from dragoman.system import has_input

EVENTS_A_TURN = 64
"""Number of HTTP events (a head, a chunk, an end) that are handled before other connections get their
turn."""
_DISCARDED = 1 << 16
"""An unwanted body is read to its end, and the connection kept, if at most this many bytes are left."""
_ENDING_S = 2.0
_UNANSWERED = (h11.IDLE, h11.SEND_RESPONSE)
_QUIET = (ConnectionStage.NEW, ConnectionStage.IDLE)


class ProtocolWiring:
    """State shared by all connections of a server."""

    def __init__(self, gate: Gate, limits: Limits, connections: Connections) -> None:
        self.gate, self.limits, self.connections = gate, limits, connections
        self.shedder = Shedder(gate, limits.header_bytes)
        self.tasks: set[asyncio.Task[None]] = set()
        self.malformed = Seldom("%d connections on which no HTTP came, or more than is allowed", SAID_EVERY_S)


class Connection(asyncio.BufferedProtocol):
    _transport: asyncio.Transport

    def __init__(self, wiring: ProtocolWiring) -> None:
        self._wiring, self._limits, self._all = wiring, wiring.limits, wiring.connections
        self._loop = asyncio.get_running_loop()
        self._incoming = Incoming(self._limits)
        self._http = self._incoming.http
        self._step: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._begun = 0.0
        self._half_closed = False
        self.exchange: Exchange | None = None

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._outgoing = transport, Outgoing(transport)
        self._client = _address(transport.get_extra_info("peername"))
        self._server = _address(transport.get_extra_info("sockname"))
        self._network = network_of(self._client[0] if self._client else "")
        self._all.opening -= 1
        self._all.move(self, ConnectionStage.NEW)
        self._arm(_ENDING_S if self._all.draining else self._limits.receive_s, self._idle_too_long)

    def get_buffer(self, sizehint: int) -> bytearray:
        del sizehint
        return self._all.buffer

    def buffer_updated(self, nbytes: int) -> None:
        stage = self._all.stage(self)
        if stage is None or stage is ConnectionStage.ENDING:
            return
        data = bytes(memoryview(self._all.buffer)[:nbytes])
        if stage in _QUIET:
            if (answer := self._wiring.shedder.answer(data, self._network)) is not None:
                self.write(answer)
                self.answered()
                return
            self._begin()
        self._incoming.add(data)
        if self._step is None:
            self._parse()

    def eof_received(self) -> bool:
        """A client that closes its side before there is an answer does not want one: the connection ends."""
        self._half_closed = True
        return self._all.stage(self) is ConnectionStage.SENDING

    def pause_writing(self) -> None:
        self._outgoing.pause()
        self._arm(self._limits.send_s, self.abort)

    def resume_writing(self) -> None:
        stage = self._all.stage(self)
        if stage in (ConnectionStage.WORK, ConnectionStage.BODY):
            self._disarm()
        self._outgoing.resume()
        if stage is ConnectionStage.SENDING and self._outgoing.done:
            self._after_answer()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._disarm()
        if self._step is not None:
            self._step.cancel()
        self._all.remove(self)
        self._outgoing.clear()
        if self.exchange is not None and not self.exchange.ended:
            self.exchange.leave()

    # Input.

    def _begin(self) -> None:
        """The first byte of a request has arrived."""
        self._begun = self._loop.time()
        self._all.move(self, ConnectionStage.HEAD)
        self._arm(self._limits.receive_s, self.abort)

    def _parse(self) -> None:
        """Handle a limited number of events. The rest waits for the next turn of the event loop."""
        self._step = None
        for _ in range(EVENTS_A_TURN):
            if self._all.stage(self) in (None, ConnectionStage.ENDING, ConnectionStage.SENDING):
                return
            try:
                event = self._incoming.next_event()
            except Malformed as error:
                self._refuse(error)
                return
            if event is h11.PAUSED:  # the next request waits until this one is answered
                self._transport.pause_reading()
                return
            if event is h11.NEED_DATA:
                if self.exchange is None or self.exchange.ended or not self.exchange.body_full:
                    self._transport.resume_reading()
                return
            self._handle(event)
        self._transport.pause_reading()
        self._step = self._loop.call_soon(self._parse)

    def _handle(self, event: Any) -> None:
        if isinstance(event, h11.Request):
            self._disarm()  # from here on the gate enforces the timeouts
            self._all.move(self, ConnectionStage.BODY)
            scope = scope_of(event, self._client, self._server, self._begun)
            self.exchange = Exchange(self, self._http, scope)
            task = self._loop.create_task(self.exchange.run(self._wiring.gate))
            self._wiring.tasks.add(task)
            task.add_done_callback(self._wiring.tasks.discard)
            return
        assert self.exchange is not None
        ended = isinstance(event, h11.EndOfMessage)
        if self.exchange.ended:  # the body is not needed
            if ended:
                self._next_request()
        elif ended:
            self._all.move(self, ConnectionStage.WORK)
            self.exchange.end_of_body()
        elif isinstance(event, h11.Data):
            self.exchange.feed(event.data)
            if self.exchange.body_full:
                self._transport.pause_reading()

    def _refuse(self, error: Malformed) -> None:
        """Answer malformed input once. If the application has started its answer, that one stands; otherwise
        this one is sent, and the application is told that the client has disconnected."""
        self._wiring.malformed.note()
        self._wiring.gate.metrics.count("dragoman_malformed_requests_total")
        if self.exchange is not None and not self.exchange.ended:
            self.exchange.leave()
        if self._http.our_state in _UNANSWERED:
            self.write(raw_answer(error.status, {"error": error.message}, {"Connection": "close"}))
        self._end()

    # Called by the exchange.

    @property
    def closing(self) -> bool:
        """Whether the connection closes after this answer, which the answer says. A large unwanted body is
        not waited for."""
        if self._all.draining:
            return True
        if self._http.their_state is not h11.SEND_BODY or self.exchange is None:
            return False
        lengths = [value for name, value in self.exchange.scope["headers"] if name == b"content-length"]
        return not lengths or int(lengths[0][:18]) > _DISCARDED

    def write(self, data: bytes) -> None:
        self._outgoing.add(data)

    async def sent(self) -> None:
        await self._outgoing.sent()

    def body_taken(self) -> None:
        if self._step is None and self._http.their_state is h11.SEND_BODY:
            self._transport.resume_reading()

    def answered(self) -> None:
        if self._outgoing.done:
            self._after_answer()
        else:
            self._all.move(self, ConnectionStage.SENDING)
            self._transport.pause_reading()

    # End of a request, or of the connection.

    def _after_answer(self) -> None:
        if self._http.our_state is h11.MUST_CLOSE or self._all.draining or self._half_closed:
            self._end()
        elif self._http.their_state is h11.SEND_BODY:  # the rest is not needed
            self._all.move(self, ConnectionStage.BODY)
            self._arm(self._limits.receive_s, self.abort)
            self._go_on()
        else:
            self._next_request()

    def _next_request(self) -> None:
        self._incoming.next_request()
        self.exchange = None
        if self._incoming.begun:
            self._begin()
            self._go_on()
        else:
            self._rest()
            self._transport.resume_reading()

    def _go_on(self) -> None:
        """Continue with the input that has arrived in the meantime."""
        if self._step is None:
            self._step = self._loop.call_soon(self._parse)

    def _rest(self) -> None:
        """Wait for the next request, until the idle timeout."""
        self._all.move(self, ConnectionStage.IDLE)
        self._arm(self._limits.idle_s, self._idle_too_long)

    def _idle_too_long(self) -> None:
        if not self.drop():
            self._rest()

    def drop(self) -> bool:
        """Close an idle connection. If unread input is waiting, it may be a request, which closing would
        lose, because the system answers it with a reset. The write side is shut down at once: asyncio closes
        only in its next turn, and a request that arrives before that would be lost too."""
        if self._all.stage(self) not in _QUIET:
            self.abort()
        elif _unread(self._transport):
            return False
        else:
            with contextlib.suppress(OSError):
                self._transport.get_extra_info("socket").shutdown(socket.SHUT_WR)
            self._end()
        return True

    def drain(self) -> None:
        if self._all.stage(self) in _QUIET:
            self.drop()

    def abort(self) -> None:
        self._disarm()
        self._transport.abort()

    def _end(self) -> None:
        """Close when everything is sent. If the client is still sending, its side stays open for a moment,
        because a client whose connection is closed while it sends may never read the answer."""
        sending = (
            self._all.stage(self) in (ConnectionStage.HEAD, ConnectionStage.BODY)
            or self._http.their_state is h11.SEND_BODY
        )
        self._all.move(self, ConnectionStage.ENDING)
        self._arm(_ENDING_S, self.abort)
        self._incoming.clear()
        try:
            if sending and not self._transport.get_write_buffer_size():
                self._transport.write_eof()
                self._transport.resume_reading()
            else:
                self._transport.close()
        except OSError:  # the client has disconnected
            self._transport.abort()

    def _arm(self, seconds: float, then: Callable[[], object]) -> None:
        self._disarm()
        self._timer = self._loop.call_later(seconds, then)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _address(name: Any) -> tuple[str, int] | None:
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else None


def _unread(transport: asyncio.Transport) -> bool:
    """Whether the connection has unread input, including its end."""
    number = transport.get_extra_info("socket").fileno()
    return number >= 0 and has_input(number)
