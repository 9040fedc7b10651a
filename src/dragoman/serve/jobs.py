"""Document jobs: each has a random id and is kept for a limited time; old ones are dropped if there are too
many.

Jobs are held in memory only. Their bytes count from the upload until the client has the result or the job
expires.
"""

import asyncio
import secrets
from dataclasses import dataclass, field

from dragoman.serve.documents import Documents
from dragoman.serve.languages import LanguageCodes
from dragoman.serve.limits import Limits
from dragoman.serve.refusal import Refusal, busy
from dragoman.serve.service import Wish

_AT_ONCE = 2


@dataclass(eq=False)
class DocumentJob:
    name: str = field(repr=False)
    characters: int
    size: int
    """Size in bytes of the data held for the job."""
    id: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    key: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
    running: bool = False
    done: int = 0
    """Number of translated sentences, of `total`."""
    total: int = 0
    translated: int = 0
    """Number of translated units of the document, once it is ready."""
    left: int = 0
    fetched: bool = False
    result: bytes | None = field(default=None, repr=False)
    error: str | None = None
    task: "asyncio.Task[None] | None" = None
    expiry: asyncio.TimerHandle | None = None

    @property
    def ready(self) -> bool:
        """Whether the job is finished."""
        return self.task is None or self.task.done()

    def progress(self, done: int, total: int) -> None:
        self.done, self.total = done, total

    async def finished(self) -> None:
        if self.task is not None:
            await asyncio.wait({self.task})


class Jobs:
    def __init__(self, documents: Documents, limits: Limits) -> None:
        self._documents, self._limits = documents, limits
        self._jobs: dict[str, DocumentJob] = {}
        self._turn = asyncio.Semaphore(_AT_ONCE)

    @property
    def held(self) -> int:
        """Size of all documents in bytes."""
        return sum(job.size for job in self._jobs.values())

    def __len__(self) -> int:
        return len(self._jobs)

    def start(self, data: bytes, name: str, pair: LanguageCodes, wish: Wish) -> DocumentJob:
        limits = self._limits
        at_work = [job.size for job in self._jobs.values() if not job.ready]
        if len(at_work) >= limits.documents or sum(at_work) + len(data) > limits.documents_bytes:
            raise busy("Slowdown: too many documents wait already", seconds=10)
        self._make_room(limits.documents - 1, limits.documents_bytes - len(data))
        job = DocumentJob(name, len(data.decode("utf-8", "ignore")), len(data))
        self._jobs[job.id] = job
        loop = asyncio.get_running_loop()
        job.expiry = loop.call_later(limits.document_kept_s, self.drop, job)
        job.task = loop.create_task(self._work(job, data, pair, wish))
        return job

    def find(self, name: str) -> DocumentJob:
        job = self._jobs.get(name)
        if job is None or job.fetched:
            raise Refusal(404, "There is no such document")
        return job

    def drop(self, job: DocumentJob) -> None:
        self._jobs.pop(job.id, None)
        if job.task is not None:
            job.task.cancel()
        if job.expiry is not None:
            job.expiry.cancel()

    def close(self) -> None:
        for job in list(self._jobs.values()):
            self.drop(job)

    async def _work(self, job: DocumentJob, data: bytes, pair: LanguageCodes, wish: Wish) -> None:
        try:
            async with self._turn:
                job.running = True
                async with asyncio.timeout(self._limits.document_s):
                    translate = self._documents.translate
                    job.result, outcome = await translate(data, job.name, pair, wish, job.progress)
                    job.translated, job.left = len(outcome.texts), len(outcome.left)
        except Refusal as refusal:
            job.error = refusal.message
        except TimeoutError:
            job.error = f"The document took more than {self._limits.document_s:g} s"
        except Exception:  # the error may contain text of the document
            job.error = "The document could not be translated"
        job.size = len(job.result or b"")
        self._make_room(self._limits.documents, self._limits.documents_bytes)
        if self.held > self._limits.documents_bytes:  # all others are in progress: no room for this one
            job.result, job.size, job.error = None, 0, "There is no room for the translated document"

    def _make_room(self, documents: int, size: int) -> None:
        """Drop finished jobs, oldest first, until at most `documents` jobs and `size` bytes are left."""
        while len(self) > documents or self.held > size:
            ready = next((job for job in self._jobs.values() if job.ready), None)
            if ready is None:
                return
            self.drop(ready)
