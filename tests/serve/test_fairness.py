"""However much one client asks for, the others come to their turn."""

import asyncio
import json
import random

import pytest

from dragoman.serve.app import Options
from dragoman.serve.batcher import Batcher, Kindred
from dragoman.serve.clients import CLIENT, Places, network_of
from dragoman.serve.documents import Documents
from dragoman.serve.keys import Keys
from dragoman.serve.limits import Limits
from dragoman.serve.metrics import Metrics
from dragoman.serve.refusal import Refusal
from dragoman.serve.turns import Turns
from serve.live import on_a_still_clock, request, serving, until
from serve.standin import Shouter, service_of, shouter

LIMITS = Limits(window_s=0)
GREEDY, SMALL = "the-key-of-the-greedy-one", "the-key-of-the-small-one"


def take(queue: Turns[str], count: int) -> list[str]:
    left = [count]

    def fits(_: str) -> bool:
        left[0] -= 1
        return left[0] >= 0

    return queue.take(fits)


def test_clients_and_their_requests_take_turns() -> None:
    queue: Turns[str] = Turns()
    queue.add("a", ["a1"] * 6)
    queue.add("a", ["a2"])
    queue.add("b", ["b3"] * 2)
    assert (len(queue), queue.clients("a"), queue.clients("c"), queue.requests("a")) == (9, 2, 3, 2)
    assert take(queue, 3) == ["a1", "b3", "a2"]
    assert take(queue, 9) == ["b3", "a1", "a1", "a1", "a1", "a1"]
    assert len(queue) == 0 and take(queue, 1) == []


def test_whoever_does_not_fit_is_passed_over_and_stays_first() -> None:
    queue: Turns[str] = Turns()
    for client, items in (("a", "xx"), ("b", "yx"), ("c", "xx")):
        queue.add(client, list(items))
    assert queue.take(lambda item: item == "x") == ["x"] * 4
    assert take(queue, 9) == ["y", "x"]


def test_what_is_left_of_a_request_can_be_removed() -> None:
    queue: Turns[str] = Turns()
    first, second = queue.add("a", ["1", "2"]), queue.add("a", ["3"])
    queue.remove(first)
    queue.remove(first)
    assert len(queue) == 1 and take(queue, 9) == ["3"]
    queue.remove(second)
    assert queue.clients("b") == 1
    assert len(queue.add("a", []).left) == 0 and queue.requests("a") == 0


def test_how_many_are_ahead_is_how_many_are_taken_before() -> None:
    """Of the last of some that are new, in queues of any shape; at most one more of each client is told."""
    chance = random.Random(5)
    for _ in range(300):
        queue: Turns[str] = Turns()
        for _ in range(chance.randrange(6)):
            queue.add(chance.choice("abc"), ["old"] * chance.randrange(1, 9))
        take(queue, chance.randrange(5))
        client, count = chance.choice("abcd"), chance.randrange(1, 7)
        told, clients = queue.ahead(client, count), queue.clients(client)
        queue.add(client, ["new"] * count)
        taken = take(queue, 100)
        before = len(taken) - taken[::-1].index("new") - count
        assert before <= told <= before + clients


@pytest.mark.parametrize("small", ["another client", "greedy"])
def test_a_sentence_beside_a_book_is_in_the_next_batch(small: str) -> None:
    """Be it of another client, or another request of the same one."""
    slow = Shouter()
    slow.go_on.clear()
    batcher = Batcher(slow, LIMITS, Metrics())
    book = [f"page {number}" for number in range(5000)]

    async def ask(client: str, texts: list[str]) -> None:
        CLIENT.set(client)
        await batcher.ask(texts, Kindred())

    async def story() -> None:
        greedy = asyncio.ensure_future(ask("greedy", book))
        await until(lambda: batcher._metrics.value("dragoman_batches_total"))
        asked = asyncio.ensure_future(ask(small, ["a sentence"]))
        await until(lambda: batcher.waiting == len(book) - LIMITS.batch + 1)
        slow.go_on.set()
        await asked
        assert not greedy.done()
        await greedy

    on_a_still_clock(story)
    assert "a sentence" in slow.batches[1] and len(slow.batches[1]) == LIMITS.batch
    batcher.close()


def test_a_full_queue_has_room_for_the_share_of_each() -> None:
    """A hundred can wait. One client has a book of five hundred there, and others come."""
    slow = Shouter()
    slow.go_on.clear()
    batcher = Batcher(slow, Limits(window_s=0, queue=100), Metrics())

    def texts(count: int, name: str) -> list[str]:
        return [f"{name} {number}" for number in range(count)]

    async def ask(client: str, count: int, name: str) -> object:
        CLIENT.set(client)
        return await batcher.ask(texts(count, name), Kindred())

    async def refused(client: str, count: int) -> bool:
        try:
            async with asyncio.timeout(0):
                await ask(client, count, "x")
        except (Refusal, TimeoutError) as error:
            return isinstance(error, Refusal)
        raise AssertionError

    async def story() -> None:
        asked = [asyncio.ensure_future(ask("greedy", 500, "book"))]
        await until(lambda: batcher.waiting == 500 - LIMITS.batch)
        assert await refused("greedy", 500) and await refused("greedy", 51)
        asked.append(asyncio.ensure_future(ask("greedy", 50, "more")))  # half of what one client has
        asked.append(asyncio.ensure_future(ask("small", 50, "a")))  # half of all
        await until(lambda: batcher.waiting == 600 - LIMITS.batch)
        assert await refused("greedy", 18) and await refused("small", 26) and await refused("third", 34)
        asked.append(asyncio.ensure_future(ask("third", 33, "b")))
        await until(lambda: batcher.waiting == 633 - LIMITS.batch)
        slow.go_on.set()
        assert len(await asyncio.gather(*asked)) == 4

    on_a_still_clock(story)
    batcher.close()


def test_a_batch_takes_no_longer_than_it_should() -> None:
    """By what the last sentences took, and by characters: whoever comes next waits for its end."""
    for pace, size, batch in ((0.0, 10, 64), (0.05, 10, 20), (9.0, 10, 8), (0.001, 1000, 8)):
        slow = Shouter()
        batcher = Batcher(slow, LIMITS, Metrics())
        batcher._pace = pace
        texts = [f"{number:0{size}}" for number in range(500)]
        on_a_still_clock(lambda own=batcher, new=texts: own.ask(new, Kindred()))  # type: ignore[misc]
        assert len(slow.batches[0]) == batch
        batcher.close()


def test_a_document_is_the_work_of_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    service = service_of(limits=LIMITS)
    batcher, found = service.batchers["en", "de"], []
    own = batcher._queue.add
    monkeypatch.setattr(
        batcher._queue, "add", lambda client, items: found.append(client) or own(client, items)
    )

    async def story() -> None:
        CLIENT.set("somebody")
        await Documents(service).translate(b"a line\nand another", "a.txt", ("en", "de"))

    on_a_still_clock(story)
    assert set(found) == {"somebody"}
    service.close()


def test_one_client_leaves_places_for_others() -> None:
    limits = Limits(window_s=0, requests=4, requests_per_client=3)
    service = service_of(limits=limits)
    shouter(service).go_on.clear()

    def asking(text: str, key: str) -> bytes:
        body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
        return request(body, b"X-API-Key: " + key.encode())

    async def story() -> None:
        async with serving(service, Options(keys=Keys([GREEDY, SMALL]))) as server:
            clients = await server.clients(3)
            for number, client in enumerate(clients):
                await client.send(asking(f"text {number}", GREEDY))
            await until(lambda: server.gate.places.taken == 3)
            assert await (await server.client()).ask(asking("one more", GREEDY)) == 503
            small = await server.client()
            await small.send(asking("a sentence", SMALL))
            await until(lambda: server.gate.places.taken == 4)
            assert await (await server.client()).ask(asking("too much", SMALL)) == 503
            shouter(service).go_on.set()
            assert [(await client.answer())[0] for client in (*clients, small)] == [200] * 4
            assert server.gate.places.taken == 0

    on_a_still_clock(story)


def test_places_are_given_back() -> None:
    places = Places(2, 2)
    with places.one("a"):
        assert CLIENT.get() == "a" and not places.full("a")
        with places.one("a"):
            assert places.full("b")
    assert CLIENT.get() == "" and places.taken == 0 and not places._of


def test_addresses_are_told_apart_by_what_one_client_has() -> None:
    assert network_of("10.1.2.3") == network_of("::ffff:10.1.2.3") == "10.1.2.3"
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:2%eth0") != network_of("2001:db8:0:1::1")
    assert network_of("a name") == "a name"
