"""Identifies clients: by key, or by address if the server has no keys."""

import contextlib
import ipaddress
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache

from starlette.types import Scope

from dragoman.serve.refusal import busy

SLOWDOWN = "Slowdown: too many requests at once"
CLIENT: ContextVar[str] = ContextVar("client", default="")
"""The client of the current task."""


def address_of(scope: Scope) -> str:
    return network_of((scope.get("client") or ("",))[0])


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """The address of a client. For IPv6 only the first half, because a client usually controls all of that
    network."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)


class Places:
    """Limits the number of requests in progress, in total and per client."""

    def __init__(self, most: int, most_per_client: int) -> None:
        self._most, self._most_per_client = most, min(most, most_per_client)
        self._of: Counter[str] = Counter()
        self.taken = 0

    def full(self, client: str) -> bool:
        """Whether one more request of this client would exceed a limit."""
        return self.taken >= self._most or self._of[client] >= self._most_per_client

    @contextlib.contextmanager
    def one(self, client: str) -> Iterator[None]:
        if self.full(client):
            raise busy(SLOWDOWN, 503)
        self.taken += 1
        self._of[client] += 1
        token = CLIENT.set(client)
        try:
            yield
        finally:
            CLIENT.reset(token)
            self.taken -= 1
            self._of[client] -= 1
            if not self._of[client]:
                del self._of[client]
