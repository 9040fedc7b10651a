"""A fair queue: clients take turns, and so do the requests of each client. A client that sends a book does
not delay one that sends a sentence.

    client a: request 1 ▮▮▮▮▮▮  request 2 ▮        client b: request 3 ▮▮
    taken:    a1 b3 a2 b3 a1 a1 a1 a1 a1
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(eq=False)
class Ticket(Generic[T]):
    """A queued request with its remaining items."""

    client: str
    left: deque[T]


class Turns(Generic[T]):
    def __init__(self) -> None:
        self._clients: OrderedDict[str, OrderedDict[Ticket[T], None]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, client: str, items: Sequence[T]) -> Ticket[T]:
        ticket = Ticket(client, deque(items))
        if items:
            self._clients.setdefault(client, OrderedDict())[ticket] = None
            self._count += len(items)
        return ticket

    def remove(self, ticket: Ticket[T]) -> None:
        """Drop the remaining items of a cancelled request."""
        self._count -= len(ticket.left)
        ticket.left.clear()
        self._close(ticket)

    def clients(self, client: str) -> int:
        """Number of clients with queued requests, this one included."""
        return len(self._clients.keys() | {client})

    def requests(self, client: str) -> int:
        """Number of queued requests of this client."""
        return len(self._clients.get(client, ()))

    def ahead(self, client: str, count: int) -> int:
        """Number of items that would be taken before the last of `count` new items of this client, not
        counting those."""
        own = sum(min(len(ticket.left), count) for ticket in self._clients.get(client, ()))
        turns = own + count
        others = (tickets for name, tickets in self._clients.items() if name != client)
        return own + sum(min(sum(len(one.left) for one in tickets), turns) for tickets in others)

    def take(self, fits: Callable[[T], bool]) -> list[T]:
        """Take the next items in turn, as long as they fit. A request whose next item does not fit is skipped
        and keeps its place."""
        taken: list[T] = []
        passed: set[Ticket[T]] = set()
        found = True
        while found:
            found = False
            for client in list(self._clients):
                ticket = next((one for one in self._clients[client] if one not in passed), None)
                if ticket is None:
                    continue
                found = True
                if fits(ticket.left[0]):
                    taken.append(ticket.left.popleft())
                    self._count -= 1
                    self._after_turn(ticket)
                else:
                    passed.add(ticket)
        return taken

    def _after_turn(self, ticket: Ticket[T]) -> None:
        """Move the request and its client to the end of the queue."""
        if ticket.left:
            self._clients[ticket.client].move_to_end(ticket)
            self._clients.move_to_end(ticket.client)
        else:
            self._close(ticket)
            if ticket.client in self._clients:
                self._clients.move_to_end(ticket.client)

    def _close(self, ticket: Ticket[T]) -> None:
        tickets = self._clients.get(ticket.client)
        if tickets is not None and ticket in tickets:
            del tickets[ticket]
            if not tickets:
                del self._clients[ticket.client]
