"""Batching of requests: texts that arrive within a few milliseconds are answered together.

    ask ─▶ cached? ─ no ─▶ queue ─ window ─▶ batch of one kind ─ thread ─▶ answers

The result of a sentence does not depend on the rest of its batch. Clients take turns (`turns.py`), however
large their requests are. If a client disconnects, its sentences are removed from the queue, or from the batch
before its next step.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
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
"""Number of sentences that one worker takes even if another is idle or the batch takes long."""
_NEWEST = 0.2
"""Weight of the newest batch in the moving average of seconds per sentence."""


@dataclass(frozen=True)
class Kindred:
    """How a sentence is to be translated. All sentences of a batch share these options."""

    n_best: int = 1
    glossary: Glossary | None = None
    align: bool = False
    prefix: str = ""
    """Prefix that the translation starts with."""


@dataclass(frozen=True)
class Answer:
    """The translations of a sentence, best first, with scores and links if they were requested."""

    texts: tuple[str, ...]
    scores: tuple[float, ...] = ()
    alignment: tuple[tuple[int, int], ...] | None = None
    from_memory: bool = False
    confidence: tuple[float, ...] | None = None
    """Confidence of each word of the first translation, if alignment was requested."""
    sentence_confidence: float | None = None
    """Confidence of the whole first translation, if alignment was requested. None if the translator has no
    calibration."""


@dataclass
class _Waiting(Generic[How, Found]):
    text: str
    how: How
    future: asyncio.Future[Found]
    similar: str | None = None
    """The translation of a similar sentence, given to the model beside the source."""

    @property
    def wanted(self) -> bool:
        return not self.future.done()


def translator_threads(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="translator")


class RequestBatches(ABC, Generic[How, Found]):
    """Collects texts into batches for one model.

    Runs in one event loop. The model runs in `threads`, one per worker, which may be shared with other
    models. The texts of a batch have the same options, `How`.
    """

    def __init__(
        self, limits: Limits, metrics: Metrics, workers: int = 1, threads: ThreadPoolExecutor | None = None
    ) -> None:
        self._limits, self._metrics = limits, metrics
        self._most_workers = workers
        self._queue: Turns[_Waiting[How, Found]] = Turns()
        self._known: OrderedDict[tuple[str, How, str | None], Found] = OrderedDict()
        self._threads = threads or translator_threads(workers)
        self._workers: set[asyncio.Task[None]] = set()
        self._pace = 0.0
        self._users, self._retired = 0, False

    @abstractmethod
    def _run(
        self, texts: Sequence[str], how: How, cancelled: Sequence[Cancelled], similar: Mapping[str, str]
    ) -> list[Found]:
        """The answer to each text; runs in a thread."""

    @abstractmethod
    def _worth_keeping(self, how: How) -> bool:
        """Whether answers with these options are cached."""

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def expected_wait_s(self, client: str, count: int = 1) -> float:
        """Seconds until `count` more sentences are started, estimated from recent batches."""
        return self._queue.ahead(client, count) * self._pace / self._most_workers

    @property
    def full(self) -> bool:
        """Whether a request for one sentence would be refused now."""
        return not self._takes("", 1)

    def _takes(self, client: str, count: int) -> bool:
        """Whether `count` more sentences may be queued. If the queue is full, a client may still use its
        share of it, and each of its requests a share of that."""
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

    async def ask(
        self, texts: Sequence[str], how: How, patient: bool = False, similar: Mapping[str, str] | None = None
    ) -> list[Found]:
        """The answers to the texts. Refused at once if the queue is full; a `patient` request (a document)
        waits instead. `similar` has the translations of similar sentences for some texts."""
        with self._in_use():
            return await self._ask(texts, how, patient, similar or {})

    async def _ask(
        self, texts: Sequence[str], how: How, patient: bool, similar: Mapping[str, str]
    ) -> list[Found]:
        client = CLIENT.get()
        wanted = list(dict.fromkeys(texts))
        answers = {text: self._remembered(text, how, similar.get(text)) for text in wanted}
        known = {text: answer for text, answer in answers.items() if answer is not None}
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
        waiting = [_Waiting(text, how, loop.create_future(), similar.get(text)) for text in new]
        ticket = self._queue.add(client, waiting)
        if waiting and len(self._workers) < self._most_workers:
            self._workers.add(loop.create_task(self._work()))
        try:
            found = await asyncio.gather(*(one.future for one in waiting))
        except BaseException:  # cancelled or refused: the other texts are no longer needed
            self._queue.remove(ticket)
            for one in waiting:
                one.future.cancel()
            raise
        known |= zip(new, found, strict=True)
        return [known[text] for text in texts]

    async def in_turn(self, function: Callable[[str, str | None], T], text: str, other: str | None) -> T:
        """Run a function between two batches, so that a translator with one worker does nothing else
        meanwhile."""
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
        """Close this when the last request is done. New requests go elsewhere."""
        self._retired = True
        if not self._users:
            self.close()

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _work(self) -> None:
        """Process batches until the queue is empty. The worker removes itself at once, so a later request
        starts a new one."""
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
        """The next sentences in turn, as long as their options equal those of the first."""
        most = min(self._limits.batch, max(_LEAST_SHARED, -(-len(self._queue) // self._most_workers)))
        if self._pace:
            most = min(most, max(_LEAST_SHARED, int(self._limits.batch_s / self._pace)))
        first: _Waiting[How, Found] | None = None
        count = characters = 0
        similar: dict[str, str | None] = {}

        def fits(one: _Waiting[How, Found]) -> bool:
            nonlocal first, count, characters
            if first is None:
                first = one
            elif (
                count >= most
                or one.how != first.how
                or similar.get(one.text, one.similar) != one.similar
                or characters + len(one.text) > self._limits.batch_characters
            ):
                return False
            count, characters = count + 1, characters + len(one.text)
            similar[one.text] = one.similar
            return True

        return self._queue.take(fits)

    async def _translate(self, batch: Sequence[_Waiting[How, Found]]) -> None:
        askers: dict[str, list[_Waiting[How, Found]]] = {}
        for one in batch:
            askers.setdefault(one.text, []).append(one)
        texts, how = list(askers), batch[0].how
        cancelled = [partial(_none_waits, own) for own in askers.values()]
        similar = {one.text: one.similar for one in batch if one.similar is not None}
        self._metrics.count("dragoman_batches_total")
        self._metrics.count("dragoman_translated_sentences_total", len(texts))
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            found = await loop.run_in_executor(self._threads, self._run, texts, how, cancelled, similar)
        except UserError as error:
            if len(batch) > 1:  # one sentence was refused, which must not affect the others
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
            if one.wanted:  # otherwise the search may have been cancelled
                self._remember(one, answers[one.text])
                one.future.set_result(answers[one.text])

    def _remembered(self, text: str, how: How, similar: str | None) -> Found | None:
        key = text, how, similar
        answer = self._known.get(key)
        if answer is not None:
            self._known.move_to_end(key)
        return answer

    def _remember(self, one: _Waiting[How, Found], answer: Found) -> None:
        if len(one.text) > _LONGEST_REMEMBERED or not self._worth_keeping(one.how) or not self._limits.cached:
            return
        self._known[one.text, one.how, one.similar] = answer
        if len(self._known) > self._limits.cached:
            self._known.popitem(last=False)


class Batcher(RequestBatches[Kindred, Answer]):
    """Collects sentences into batches for a translator."""

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
        return how.glossary is None  # a cached answer would keep the whole glossary in memory

    def _run(
        self,
        texts: Sequence[str],
        how: Kindred,
        cancelled: Sequence[Cancelled],
        similar: Mapping[str, str],
    ) -> list[Answer]:
        translator, size = self.translator, self._limits.batch_tokens
        if how == Kindred() and not similar:
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
            **({"similar": similar} if similar else {}),
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
