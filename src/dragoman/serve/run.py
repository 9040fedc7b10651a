"""Runs the server until it is stopped."""

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

from dragoman.errors import UserError
from dragoman.serve.app import Options, build
from dragoman.serve.gate import Gate
from dragoman.serve.limits import Limits
from dragoman.serve.models import Models
from dragoman.serve.server import Server
from dragoman.serve.service import Service
from dragoman.system import stop_signals

_MOST_FILES = 1 << 16
_WINDOWS_SOCKETS = 500
"""Limit of `select` on Windows, 512, minus some that are not connections."""
_OTHER_FILES = 64
"""Number of files that are not connections: documents, glossaries, and connections being closed."""


_given: ContextVar[list[Gate] | None] = ContextVar("given", default=None)


@contextlib.contextmanager
def given_to_others() -> Iterator[list[Gate]]:
    """Inside, `serve` adds its application to the list, for others to serve, such as Ray."""
    gates: list[Gate] = []
    token = _given.set(gates)
    try:
        yield gates
    finally:
        _given.reset(token)


def serve(
    service: Service | None,
    options: Options,
    host: str,
    port: int,
    ready: Callable[[str], None],
    models: Models | None = None,
) -> None:
    """Serve until stopped. SIGTERM and Ctrl-C close the port and finish the requests in progress; a second
    signal does not wait."""
    if options.keys is None and not is_loopback(host):
        raise UserError(f"--host {host}: others could reach it; give --key-file, or leave --host out")
    gate = build(service, options, models)
    if (given := _given.get()) is not None:
        given.append(gate)
        return
    until_stopped(gate, gate.limits, host, port, ready)


def until_stopped(gate: Gate, limits: Limits, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve the application behind the gate until stopped."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    with contextlib.closing(listen(host, port)) as listening:
        name = address_to_open(host)
        server = Server(gate, limits, min(limits.connections, connections_possible()))
        ready(f"http://{name}:{listening.getsockname()[1]}/")
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            unanswered = runner.run(_run(server, listening))
    if unanswered:
        raise UserError(f"stopped, and {unanswered} requests got no answer within {limits.drain_s:g} s")


async def _run(server: Server, listening: socket.socket) -> int:
    for number in stop_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            continue
        try:
            asyncio.get_running_loop().add_signal_handler(number, server.stop)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda _number, _frame: server.stop())
    return await server.run(listening)


def connections_possible() -> int:
    """The number of connections that the open-file limit of this process allows. The limit is raised as far
    as the system permits."""
    if sys.platform == "win32":
        return _WINDOWS_SOCKETS
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return max(1, soft - len(list(Path("/dev/fd").iterdir())) - _OTHER_FILES)


def address_to_open(host: str) -> str:
    """A host as written in a URL. A wildcard address is replaced by a loopback address."""
    named = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{named}]" if ":" in named else named


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, explicitly TCP. Only then does asyncio disable Nagle's algorithm, which delays
    answers by 40 ms."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":  # on Windows it would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(512)
    except OSError as error:
        listening.close()
        raise UserError(
            f"--port {port}: cannot listen on {host} ({error.strerror}); choose another"
        ) from None
    return listening
