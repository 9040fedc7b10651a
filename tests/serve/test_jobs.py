"""Documents in work: how many, how large, how old; and that one that nobody waits for ends."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from dragoman.data import documents as formats
from dragoman.data.documents.translate import TranslatedUnits
from dragoman.serve.app import Options
from dragoman.serve.documents import Documents
from dragoman.serve.jobs import DocumentJob, Jobs
from dragoman.serve.limits import Limits
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Wish
from serve.standin import client_of, service_of

PAIR = ("en", "de")


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose time is set by hand."""

    now = 0.0

    def time(self) -> float:
        return self.now


class Ready:
    """Documents that come back as they are, or larger; or never, until they are let go."""

    def __init__(self, grows: int = 1) -> None:
        self.grows, self.go_on = grows, asyncio.Event()
        self.go_on.set()

    async def translate(self, data: bytes, *_: object) -> tuple[bytes, TranslatedUnits]:
        await self.go_on.wait()
        return data * self.grows, TranslatedUnits()


def run(story: Callable[[Clock], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=Clock) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, Clock)
        runner.run(story(loop))


async def turns() -> None:
    """Of the event loop, until what is due is done."""
    for _ in range(5):
        await asyncio.sleep(0)


def started(jobs: Jobs, size: int) -> DocumentJob:
    return jobs.start(b"a" * size, "a.txt", PAIR, Wish())


def there(jobs: Jobs, job: DocumentJob) -> bool:
    try:
        return jobs.find(job.id) is job
    except Refusal as refusal:
        assert refusal.status == 404
        return False


def test_a_document_is_forgotten_after_its_time() -> None:
    """Also if nobody asks for it or for any other."""

    async def story(loop: Clock) -> None:
        jobs = Jobs(Ready(), Limits(document_kept_s=3600))  # type: ignore[arg-type]
        job = started(jobs, 100)
        await job.finished()
        loop.now += 3599
        await turns()
        assert there(jobs, job) and jobs.held == 100
        loop.now += 2
        await turns()
        assert not there(jobs, job) and jobs.held == len(jobs) == 0

    run(story)


def test_a_document_that_waits_for_too_long_is_given_up() -> None:
    async def story(loop: Clock) -> None:
        documents = Ready()
        documents.go_on.clear()
        jobs = Jobs(documents, Limits(document_s=600, document_kept_s=3600))  # type: ignore[arg-type]
        first, *others = [started(jobs, 10) for _ in range(5)]
        await turns()
        loop.now += 601
        await first.finished()
        assert first.error == "The document took more than 600 s" and first.result is None
        loop.now += 3000
        await asyncio.wait({job.task for job in others if job.task})
        assert len(jobs) == 0 and all(job.task is not None and job.task.done() for job in others)

    run(story)


def test_documents_have_room_for_so_many_bytes_together() -> None:
    async def story(_: Clock) -> None:
        documents = Ready()
        jobs = Jobs(documents, Limits(documents=3, documents_bytes=100))  # type: ignore[arg-type]
        done = [started(jobs, 30) for _ in range(3)]
        for job in done:
            await job.finished()
        documents.go_on.clear()
        fourth = started(jobs, 30)  # the oldest that is ready makes room
        assert [there(jobs, job) for job in done] == [False, True, True]
        with pytest.raises(Refusal) as refusal:
            started(jobs, 71)  # two more would have to go, and that would not be enough
        assert refusal.value.status == 429 and refusal.value.headers["Retry-After"] == "10"
        assert [there(jobs, job) for job in done] == [False, True, True]
        fifth = started(jobs, 70)
        assert not any(there(jobs, job) for job in done) and jobs.held == 100
        with pytest.raises(Refusal):
            started(jobs, 1)
        documents.go_on.set()
        await asyncio.wait({job.task for job in (fourth, fifth) if job.task})
        assert jobs.held <= 100

    run(story)


def test_a_result_that_is_larger_than_the_document_counts() -> None:
    async def story(_: Clock) -> None:
        jobs = Jobs(Ready(grows=4), Limits(documents_bytes=100))  # type: ignore[arg-type]
        first, second = started(jobs, 20), started(jobs, 20)
        await first.finished()
        await second.finished()
        assert not there(jobs, first) and second.result is not None and jobs.held == 80
        third = started(jobs, 30)
        await third.finished()
        assert third.error == "There is no room for the translated document" and third.result is None
        assert jobs.held == 0

    run(story)


def test_a_fetched_document_is_gone_and_its_room_is_free_when_it_is_sent() -> None:
    with client_of(service_of(limits=Limits(documents=1))) as client:
        for _ in range(3):
            pair, file = {"source_lang": "en", "target_lang": "de"}, {"file": ("a.txt", b"some text")}
            sent = client.post("/v2/document", data=pair, files=file).json()
            own, key = f"/v2/document/{sent['document_id']}", {"document_key": sent["document_key"]}
            while client.post(own, json=key).json()["status"] in ("queued", "translating"):
                pass
            assert client.post(f"{own}/result", json=key).content == b"SOME TEXT"
            assert client.post(own, json=key).status_code == 404


def test_documents_that_nobody_waits_for_leave_their_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty that would be read for ever; their clients leave, and others are served."""
    reading = threading.Semaphore(0)

    def endless(_text: str, _name: str, _pair: tuple[str, str], check: Callable[[int], None]) -> None:
        reading.release()
        while True:
            check(0)

    monkeypatch.setitem(formats.SUFFIXES, ".txt", endless)
    service = service_of()

    async def story() -> None:
        documents = Documents(service, threads=4)
        tasks = [asyncio.ensure_future(documents.translate(b"a", "a.txt", PAIR)) for _ in range(20)]
        for _ in range(4):  # all threads are taken
            assert await asyncio.to_thread(reading.acquire, timeout=600)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        found = await documents.html("<p>a</p>", PAIR, Wish())
        assert found.text == "<p>A</p>"
        documents.close()

    asyncio.run(story())
    service.close()


def test_a_document_has_so_many_parts() -> None:
    with client_of(service_of(limits=Limits(document_parts=50)), Options()) as client:
        for name, text, status in (
            ("a.txt", "a\n" * 24, 200),
            ("a.txt", "\n" * 60, 400),
            ("a.html", "<b>a</b>" * 20, 400),
            ("a.md", "`a` " * 40, 400),
            ("a.tmx", f"<tmx>{'<a/>' * 60}</tmx>", 400),
            ("a.po", "# a\n" * 60, 400),
        ):
            sent = {"data": {"source": "en", "target": "de"}, "files": {"file": (name, text.encode())}}
            response = client.post("/api/v1/documents", **sent)
            assert response.status_code == status, (name, response.text)
            if status == 400:
                told = f"{name}: more than 50 lines, tags and pieces of text; split it"
                assert response.json() == {"error": told}


def test_a_sentence_of_a_document_is_no_longer_than_a_text() -> None:
    service = service_of(limits=Limits(characters=40))
    with client_of(service) as client:
        data = f"Short one. Another.\n{'very ' * 20}long.\n".encode()
        sent = {"data": {"source": "en", "target": "de"}, "files": {"file": ("a.txt", data)}}
        response = client.post("/api/v1/documents", **sent)
        assert response.content == data.replace(b"Short one. Another.", b"SHORT ONE. ANOTHER.")
        assert response.headers["x-units-left"] == "1"


def test_few_large_documents_are_in_work_at_once() -> None:
    service = service_of(limits=Limits(large_documents=2))
    at_once: list[int] = []

    async def story() -> None:
        documents = Documents(service, threads=8)
        large = ("word " * 60_000).encode()

        async def one(data: bytes) -> None:
            await documents.translate(data, "a.txt", PAIR)

        tasks = [asyncio.ensure_future(one(large)) for _ in range(6)]
        while not all(task.done() for task in tasks):
            at_once.append(len(documents._works))
            await asyncio.sleep(0)
        documents.close()

    asyncio.run(story())
    service.close()
    assert max(at_once) == 2
