"""Serve until told to stop: uvicorn, with the deadlines that it lacks, and a drain at the end."""

import asyncio
import contextlib
import ipaddress
import logging
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dragoman.errors import UserError
from dragoman.serve.app import Options, build
from dragoman.serve.gate import Gate
from dragoman.serve.limits import Limits
from dragoman.serve.service import Service

_DRAIN_S = 30


def serve(
    service: Service,
    options: Options,
    host: str,
    port: int,
    ready: Callable[[str], None],
) -> None:
    """Blocks. SIGTERM and Ctrl-C stop listening at once and finish what is in work."""
    if options.keys is None and not is_loopback(host):
        raise UserError(f"--host {host}: others could reach it; give --key-file, or leave --host out")
    until_stopped(build(service, options), service.limits, host, port, ready)


def until_stopped(app: Gate, limits: Limits, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Blocks, and answers with what stands behind the gate."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    config = uvicorn.Config(
        app,
        http=protocol_of(limits),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=_DRAIN_S,
        h11_max_incomplete_event_size=limits.header_bytes,
    )
    with contextlib.closing(listen(host, port)) as listening:
        name = f"[{host}]" if ":" in host else host
        ready(f"http://{name}:{listening.getsockname()[1]}/")
        uvicorn.Server(config).run(sockets=[listening])


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A socket that says it is TCP: only then does asyncio send at once, instead of 40 ms later (Nagle)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(512)
    except OSError as error:
        listening.close()
        raise UserError(
            f"--port {port}: cannot listen on {host} ({error.strerror}); choose another"
        ) from None
    return listening


def protocol_of(limits: Limits) -> type[H11Protocol]:
    """uvicorn waits for ever for the rest of a request's head; this one closes the connection."""

    class Protocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._await_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._forget()  # a request is in work, and the gate looks at the clock
            elif self._deadline is None:
                self._await_head()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._forget()  # from here on it is uvicorn's keep-alive time

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

        def _await_head(self) -> None:
            self._deadline = self.loop.call_later(limits.receive_s, self._close)

        def _close(self) -> None:
            self._deadline = None
            if not self.transport.is_closing():
                self.transport.abort()

        def _forget(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return Protocol
