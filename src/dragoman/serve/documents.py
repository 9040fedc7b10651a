"""Documents and markup, translated in place (`data/documents`) through the batches of the service."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AsyncExitStack
from contextvars import copy_context
from dataclasses import replace
from pathlib import PurePath

from dragoman.data.documents import DOCUMENTS, head_of, parse_document
from dragoman.data.documents.translate import TranslatedUnits, UnitProgress, translate_units
from dragoman.errors import UserError
from dragoman.serve.languages import LanguageCodes, base
from dragoman.serve.masks import mask
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Service, Translated, Wish

_LARGE = 256 << 10
_HEAD = 1000
_SIGNS = {
    "<xliff": ".xliff",
    "<tmx": ".tmx",
    "<!doctype html": ".html",
    "<html": ".html",
    "webvtt": ".vtt",
    'msgid "': ".po",
}


class _Stopped(Exception):
    pass


class _Work:
    """A document in a thread. Stopping it cancels its request; the thread ends at the next line, tag or unit.
    It also ends if the document has too many of them."""

    def __init__(self, name: str, most_parts: int) -> None:
        self._name, self._most, self._parts = name, most_parts, 0
        self._lock = threading.Lock()
        self._stopped = False
        self._asked: Future[list[Translated]] | None = None

    def check(self, parts: int) -> None:
        if self._stopped:
            raise _Stopped
        self._parts += parts
        if self._parts > self._most:
            most = f"{self._most:,} lines, tags and pieces of text"
            raise UserError(f"{self._name}: more than {most}; split it")

    def wait(self, ask: Callable[[], Future[list[Translated]]]) -> list[Translated]:
        with self._lock:
            if self._stopped:
                raise _Stopped
            asked = self._asked = ask()
        try:
            return asked.result()
        except CancelledError:
            raise _Stopped from None

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._asked is not None:
                self._asked.cancel()


class Documents:
    """Threads that wait while the service translates the units of documents, one batch at a time."""

    def __init__(self, service: Service, threads: int = 8) -> None:
        self.service = service
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="document")
        self._large = asyncio.Semaphore(service.limits.large_documents)
        self._works: set[_Work] = set()

    async def translate(
        self,
        data: bytes,
        name: str,
        pair: LanguageCodes,
        wish: Wish | None = None,
        progress: UnitProgress | None = None,
    ) -> tuple[bytes, TranslatedUnits]:
        """The translated document. Cancelling the call stops the work. `progress` is called in a thread with
        the number of translated sentences."""
        loop, limits = asyncio.get_running_loop(), self.service.limits
        own = _Work(name, limits.document_parts)
        ask = self._blocking(pair, wish or Wish(), own, loop)

        def work() -> tuple[bytes, TranslatedUnits]:
            opened = parse_document(data, name, pair, own.check)
            outcome = translate_units(
                opened.units,
                ask,
                progress,
                limits.batch,
                limits.characters,
                own.check,
                base(pair[0]),
                self.service.context(pair),
            )
            return opened.written(outcome.texts, own.check), outcome

        async with AsyncExitStack() as room:
            if len(data) > _LARGE:
                await room.enter_async_context(self._large)
            self._works.add(own)
            try:
                return await loop.run_in_executor(self._threads, copy_context().run, work)
            except UserError as error:
                raise Refusal(400, str(error)) from None
            finally:
                own.stop()
                self._works.discard(own)

    async def html(self, text: str, pair: LanguageCodes, wish: Wish) -> Translated:
        """Translate a piece of HTML: blocks one by one, with tags and attributes unchanged."""
        masked = mask(text, ignored=wish.ignored)
        data, _ = await self.translate(
            masked.text.encode("utf-8"), "text.html", pair, replace(wish, ignored=())
        )
        return Translated(masked.unmask(data.decode("utf-8")))

    def close(self) -> None:
        for own in self._works:
            own.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _blocking(
        self, pair: LanguageCodes, wish: Wish, own: _Work, loop: asyncio.AbstractEventLoop
    ) -> Callable[[list[str]], list[str]]:
        """A blocking function for a thread. Documents are already split into sentences, and they wait where
        other requests would be refused."""
        patient = replace(wish, split="none", patient=True, n_best=1, align=False)

        def translate(texts: list[str]) -> list[str]:
            def ask() -> Future[list[Translated]]:
                return asyncio.run_coroutine_threadsafe(self.service.translate(texts, pair, patient), loop)

            return [one.text for one in own.wait(ask)]

        return translate


def name_with_suffix(name: str, data: bytes) -> str:
    """The name of an upload. If it has no suffix, one is derived from the content."""
    plain = PurePath(name.replace("\\", "/")).name or "file"
    if PurePath(plain).suffix:
        return plain
    head = (
        data[:_HEAD]
        .decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "replace")
        .lower()
    )
    found = next((suffix for sign, suffix in _SIGNS.items() if sign in head), None)
    if found is None:
        found = ".srt" if " --> " in head else ".txt"
    return plain + found


async def language_of_document(service: Service, data: bytes, name: str, target: str | None) -> str:
    """The source language of an upload that does not name it."""
    try:
        text = await asyncio.to_thread(head_of, data, name)
    except UserError as error:
        raise Refusal(400, str(error)) from None
    return service.detect(text, target)[0][0]


def supported() -> list[str]:
    return list(DOCUMENTS)
