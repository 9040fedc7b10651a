"""One model that many ask at once: what comes within a few milliseconds is answered together.

    ask ─▶ remembered? ─ no ─▶ queue ─ window ─▶ batch of one kind ─ thread ─▶ answers

A sentence is translated alike in any batch, so nobody notices who else was asking. Clients come to their turn
one after the other (`turns.py`), however much one of them asks for. Who leaves before their turn is taken out
of the queue; who leaves later, out of the batch before its next step.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from dragoman.decode.confidence import Calibration
from dragoman.decode.search.job import Cancelled
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.errors import UserError
from dragoman.serve.clients import CLIENT
from dragoman.serve.confidence import word_confidences
from dragoman.serve.limits import Limits
from dragoman.serve.metrics import Metrics
from dragoman.serve.refusal import Refusal, busy
from dragoman.serve.translates import Translates
from dragoman.serve.turns import Turns
from dragoman.text.glossary import Glossary
from dragoman.text.spans import DEFAULT_KINDS

T = TypeVar("T")
How = TypeVar("How", bound=Hashable)
Found = TypeVar("Found")
_LONGEST_REMEMBERED = 1000
_LEAST_SHARED = 8
"""Sentences that one worker takes even if another could have some of them, or if they take long."""
_NEWEST = 0.2
"""What the newest batch counts in the pace of a translator: seconds a sentence."""


@dataclass(frozen=True)
class Kindred:
    """How a sentence is to be translated. Sentences of one batch have this in common."""

    n_best: int = 1
    glossary: Glossary | None = None
    align: bool = False
    prefix: str = ""
    """What the translation begins with."""


@dataclass(frozen=True)
class Answer:
    """The translations of a sentence, best first; scores and links where more than text was asked."""

    texts: tuple[str, ...]
    scores: tuple[float, ...] = ()
    alignment: tuple[tuple[int, int], ...] | None = None
    from_memory: bool = False
    confidence: tuple[float, ...] | None = None
    """Of each word of the first, where alignment was asked."""
    sentence_confidence: float | None = None
    """Of the first as a whole, likewise; None where the translator has no calibration."""


@dataclass
class _Waiting(Generic[How, Found]):
    text: str
    how: How
    future: asyncio.Future[Found]

    @property
    def wanted(self) -> bool:
        return not self.future.done()


def translator_threads(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="translator")


class AskedModel(ABC, Generic[How, Found]):
    """Runs in one event loop; the model runs in `threads`, as many as it has `workers`, which it may share
    with others. Texts of one batch are asked about in the same way, `How`."""

    def __init__(
        self, limits: Limits, metrics: Metrics, workers: int = 1, threads: ThreadPoolExecutor | None = None
    ) -> None:
        self._limits, self._metrics = limits, metrics
        self._most_workers = workers
        self._queue: Turns[_Waiting[How, Found]] = Turns()
        self._known: OrderedDict[tuple[str, How], Found] = OrderedDict()
        self._threads = threads or translator_threads(workers)
        self._workers: set[asyncio.Task[None]] = set()
        self._pace = 0.0
        self._users, self._retired = 0, False

    @abstractmethod
    def _run(self, texts: Sequence[str], how: How, cancelled: Sequence[Cancelled]) -> list[Found]:
        """Of each text, in a thread."""

    @abstractmethod
    def _worth_keeping(self, how: How) -> bool:
        """Whether what was found is remembered."""

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def expected_wait_s(self, client: str, count: int = 1) -> float:
        """Until the last of so many sentences is begun, by what the last ones took."""
        return self._queue.ahead(client, count) * self._pace / self._most_workers

    @property
    def full(self) -> bool:
        """Somebody who asks for a sentence now would be refused."""
        return not self._takes("", 1)

    def _takes(self, client: str, count: int) -> bool:
        """Whether so many sentences more can wait. Where the queue is full, a client may still have its share
        of it, and each of its requests a share of that."""
        most = self._limits.queue
        if not self._queue:
            return True
        if self.expected_wait_s(client, count) > self._limits.wait_s:
            return False
        if len(self._queue) + count <= most:
            return True
        waiting = self._queue.requests(client)
        if count > most:
            return not waiting and len(self._queue) <= most
        return count <= most // self._queue.clients(client) // (waiting + 1)

    async def ask(self, texts: Sequence[str], how: How, patient: bool = False) -> list[Found]:
        """Refused at once where too much waits already; `patient` (for a document) waits instead."""
        with self._in_use():
            return await self._ask(texts, how, patient)

    async def _ask(self, texts: Sequence[str], how: How, patient: bool) -> list[Found]:
        client = CLIENT.get()
        wanted = list(dict.fromkeys(texts))
        known = {text: answer for text in wanted if (answer := self._remembered(text, how)) is not None}
        self._metrics.count("dragoman_cached_sentences_total", len(known))
        new = [text for text in wanted if text not in known]
        while new and not self._takes(client, len(new)):
            if not patient:
                seconds = max(1, round(self.expected_wait_s(client, len(new)) / 2))
                raise busy(
                    f"Slowdown: {len(self._queue)} sentences wait already; try again soon", 429, seconds
                )
            await asyncio.sleep(0.05)
        loop = asyncio.get_running_loop()
        waiting = [_Waiting(text, how, loop.create_future()) for text in new]
        ticket = self._queue.add(client, waiting)
        if waiting and len(self._workers) < self._most_workers:
            self._workers.add(loop.create_task(self._work()))
        try:
            found = await asyncio.gather(*(one.future for one in waiting))
        except BaseException:  # cancelled or refused: the others are not wanted any more
            self._queue.remove(ticket)
            for one in waiting:
                one.future.cancel()
            raise
        known |= zip(new, found, strict=True)
        return [known[text] for text in texts]

    async def in_turn(self, function: Callable[[str, str | None], T], text: str, other: str | None) -> T:
        """Between two batches, so that a translator with one worker does nothing else meanwhile."""
        with self._in_use():
            return await asyncio.get_running_loop().run_in_executor(self._threads, function, text, other)

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if self._retired and not self._users:
                self.close()

    def retire(self) -> None:
        """Close it when nobody waits for it any more; others do not ask it again."""
        self._retired = True
        if not self._users:
            self.close()

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _work(self) -> None:
        """Until nothing waits. It is gone in the moment that it sees so: who asks next needs a new worker."""
        try:
            while self._queue:
                if len(self._queue) < self._limits.batch and self._limits.window_s:
                    await asyncio.sleep(self._limits.window_s)
                if batch := self._next_batch():
                    await self._translate(batch)
        finally:
            task = asyncio.current_task()
            assert task is not None
            self._workers.discard(task)

    def _next_batch(self) -> list[_Waiting[How, Found]]:
        """Those whose turn it is, as far as they are to be translated in the same way as the first."""
        most = min(self._limits.batch, max(_LEAST_SHARED, -(-len(self._queue) // self._most_workers)))
        if self._pace:
            most = min(most, max(_LEAST_SHARED, int(self._limits.batch_s / self._pace)))
        first: _Waiting[How, Found] | None = None
        count = characters = 0

        def fits(one: _Waiting[How, Found]) -> bool:
            nonlocal first, count, characters
            if first is None:
                first = one
            elif (
                count >= most
                or one.how != first.how
                or characters + len(one.text) > self._limits.batch_characters
            ):
                return False
            count, characters = count + 1, characters + len(one.text)
            return True

        return self._queue.take(fits)

    async def _translate(self, batch: Sequence[_Waiting[How, Found]]) -> None:
        askers: dict[str, list[_Waiting[How, Found]]] = {}
        for one in batch:
            askers.setdefault(one.text, []).append(one)
        texts, how = list(askers), batch[0].how
        cancelled = [partial(_none_waits, own) for own in askers.values()]
        self._metrics.count("dragoman_batches_total")
        self._metrics.count("dragoman_translated_sentences_total", len(texts))
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            found = await loop.run_in_executor(self._threads, self._run, texts, how, cancelled)
        except UserError as error:
            if len(batch) > 1:  # somebody's sentence was refused: that is no matter of the others
                for one in batch:
                    if one.wanted:
                        await self._translate([one])
                return
            _fail(batch, Refusal(400, str(error)))
            return
        except Exception as error:
            _fail(batch, error)
            return
        took = (loop.time() - begun) / len(texts)
        self._pace = (1 - _NEWEST) * self._pace + _NEWEST * took if self._pace else took
        answers = dict(zip(texts, found, strict=True))
        for one in batch:
            if one.wanted:  # else the search may have been given up
                self._remember(one.text, how, answers[one.text])
                one.future.set_result(answers[one.text])

    def _remembered(self, text: str, how: How) -> Found | None:
        answer = self._known.get((text, how))
        if answer is not None:
            self._known.move_to_end((text, how))
        return answer

    def _remember(self, text: str, how: How, answer: Found) -> None:
        if len(text) > _LONGEST_REMEMBERED or not self._worth_keeping(how) or not self._limits.cached:
            return
        self._known[text, how] = answer
        if len(self._known) > self._limits.cached:
            self._known.popitem(last=False)


class Batcher(AskedModel[Kindred, Answer]):
    """Of a translator."""

    def __init__(
        self,
        translator: Translates,
        limits: Limits,
        metrics: Metrics,
        workers: int = 1,
        threads: ThreadPoolExecutor | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        super().__init__(limits, metrics, workers, threads)
        self.translator, self._calibration = translator, calibration

    def _worth_keeping(self, how: Kindred) -> bool:
        return how.glossary is None  # what is remembered would hold the whole glossary

    def _run(self, texts: Sequence[str], how: Kindred, cancelled: Sequence[Cancelled]) -> list[Answer]:
        translator, size = self.translator, self._limits.batch_tokens
        if how == Kindred():
            found = translator.translate(texts, batch_tokens=size, protect=DEFAULT_KINDS, cancelled=cancelled)
            return [Answer((text,)) for text in found]
        search = translator.search
        if how.n_best > 1:
            search = search.with_n_best(how.n_best)
        asked = translator.hypotheses(
            texts,
            search=search,
            prefixes=[how.prefix] * len(texts) if how.prefix else None,
            glossary=how.glossary,
            protect=DEFAULT_KINDS,
            align=how.align,
            batch_tokens=size,
            cancelled=cancelled,
        )
        return [
            Answer(
                tuple(one.text for one in row),
                tuple(one.score for one in row),
                row[0].alignment,
                confidence=word_confidences(row[0]) if how.align else None,
                sentence_confidence=self._sure(text, row[0]) if how.align else None,
            )
            for text, row in zip(texts, asked, strict=True)
        ]

    def _sure(self, text: str, found: Hypothesis) -> float | None:
        return None if self._calibration is None else self._calibration.confidence(text, found)


def _none_waits(askers: Sequence[_Waiting[Any, Any]]) -> bool:
    return not any(one.wanted for one in askers)


def _fail(batch: Sequence[_Waiting[Any, Any]], error: Exception) -> None:
    for one in batch:
        if one.wanted:
            one.future.set_exception(error)
