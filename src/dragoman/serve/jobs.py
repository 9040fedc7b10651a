"""Documents in work: each has a random name, is kept for a while, and goes when there are too many."""

import asyncio
import secrets
import time
from dataclasses import dataclass, field

from dragoman.serve.documents import Documents
from dragoman.serve.limits import Limits
from dragoman.serve.refusal import Refusal, busy
from dragoman.serve.service import Pair, Wish

_AT_ONCE = 2


@dataclass
class Job:
    name: str
    characters: int
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    key: str = field(default_factory=lambda: secrets.token_hex(32))
    begun: float = field(default_factory=time.monotonic)
    running: bool = False
    result: bytes | None = None
    error: str | None = None
    task: "asyncio.Task[None] | None" = None

    async def finished(self) -> None:
        if self.task is not None:
            await asyncio.wait({self.task})


class Jobs:
    def __init__(self, documents: Documents, limits: Limits) -> None:
        self._documents, self._limits = documents, limits
        self._jobs: dict[str, Job] = {}
        self._turn = asyncio.Semaphore(_AT_ONCE)

    def start(self, data: bytes, name: str, pair: Pair, wish: Wish) -> Job:
        self._forget_old()
        job = Job(name, len(data.decode("utf-8", "ignore")))
        self._jobs[job.id] = job
        job.task = asyncio.get_running_loop().create_task(self._work(job, data, pair, wish))
        return job

    def find(self, name: str) -> Job:
        job = self._jobs.get(name)
        if job is None or time.monotonic() - job.begun > self._limits.document_kept_s:
            raise Refusal(404, "There is no such document")
        return job

    def drop(self, job: Job) -> None:
        self._jobs.pop(job.id, None)
        if job.task is not None:
            job.task.cancel()

    def close(self) -> None:
        for job in list(self._jobs.values()):
            self.drop(job)

    async def _work(self, job: Job, data: bytes, pair: Pair, wish: Wish) -> None:
        try:
            async with self._turn:
                job.running = True
                async with asyncio.timeout(self._limits.document_s):
                    job.result, _ = await self._documents.translate(data, job.name, pair, wish)
        except Refusal as refusal:
            job.error = refusal.message
        except TimeoutError:
            job.error = f"The document took more than {self._limits.document_s:g} s"
        except Exception:  # what went wrong may hold text of the document
            job.error = "The document could not be translated"

    def _forget_old(self) -> None:
        """What is too old, and if there are still too many, what has been ready for longest."""
        for job in list(self._jobs.values()):
            if time.monotonic() - job.begun > self._limits.document_kept_s:
                self.drop(job)
        ready = [job for job in self._jobs.values() if job.task is None or job.task.done()]
        if len(self._jobs) >= self._limits.documents and ready:
            self.drop(ready[0])
        if len(self._jobs) >= self._limits.documents:
            raise busy("Slowdown: too many documents wait already", seconds=10)
