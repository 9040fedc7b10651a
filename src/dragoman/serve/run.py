"""Serve until told to stop: uvicorn, and a drain at the end."""

import contextlib
import ipaddress
import logging
import socket
from collections.abc import Callable

import uvicorn

from dragoman.errors import UserError
from dragoman.serve.app import Options, build
from dragoman.serve.gate import Gate
from dragoman.serve.limits import Limits
from dragoman.serve.protocol import protocol_of
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
        http=protocol_of(limits, app),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
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
