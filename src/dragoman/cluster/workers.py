"""Workers on the machines of a Ray cluster, each an actor that holds what `Work.open` returns, a translator
for example."""

import hashlib
import os
import platform
import queue
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dragoman.cluster import require
from dragoman.cluster.schedule import Failed, Gone, Made, Ready, Refused, Reply
from dragoman.cluster.storage import StoragePlace, mirrors
from dragoman.errors import UserError
from dragoman.system import use_at_most

_CORES = 4
"""Of a worker without a GPU: as many as a search uses well."""
_WAIT_SECONDS, _LOOK_SECONDS = 1.0, 1.0
_TRIES, _START_SECONDS = 4, 120.0
"""How often a worker of a pool is asked, and how long it may take to start."""
_REASON = 300
"""Characters of a reason."""
_CHANGED = "a message was changed on its way to a machine"


class Work(Protocol):
    """What a worker is sent. It is opened once a worker, on the machine of the worker."""

    def open(self) -> Callable[[Sequence[Any]], Any]: ...


class RayWorker:
    """The actor: a process on a machine of the cluster."""

    def __init__(self, cores: int, waiting: dict[str, str]) -> None:
        os.environ.update(waiting)  # before `open`, which may be sent what loads PyTorch
        use_at_most(cores)
        self._do: Callable[[Sequence[Any]], Any] | None = None

    def open(self, version: str, work: Work, mirrors: dict[Path, str]) -> tuple[str, str]:
        """The number of its machine, and why it cannot work if it cannot."""
        node = require("ray", "--cluster").get_runtime_context().get_node_id()
        if version != (own := own_version()):
            return node, f"{platform.node()} has dragoman {own}, and here it is {version}"
        try:
            for directory, address in mirrors.items():
                if not directory.exists():
                    StoragePlace(address).pull(directory)
            self._do = work.open()
        except UserError as error:
            return node, str(error)
        return node, ""

    def do(self, items: Sequence[Any]) -> tuple[str, Reply]:
        """A hash of what was asked, and the reply."""
        assert self._do is not None
        asked = digest_of(items)
        try:
            return asked, Made(self._do(items))
        except UserError as error:
            return asked, Refused(str(error))
        except Exception as error:  # one line must not end the work of the others
            torch = sys.modules.get("torch")
            broken = torch is not None and torch.cuda.is_initialized()  # CUDA may not recover from an error
            return asked, Failed(f"{type(error).__name__}: {error}"[:_REASON], broken)


def _waiting() -> dict[str, str]:
    """How threads of OpenMP wait for each other: as `cli/main.py` has set it for this process."""
    return {name: os.environ[name] for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT") if name in os.environ}


def own_version() -> str:
    return sys.modules["dragoman"].__version__


def digest_of(items: Sequence[Any]) -> str:
    return hashlib.sha256(repr(list(items)).encode("utf-8", "surrogatepass")).hexdigest()


class WorkerPool:
    """Workers of one core each. Whoever asks waits for the answer; as many may ask as there are."""

    def __init__(self, ray: Any, work: Work) -> None:
        self._ray, self._work = ray, work
        cores = sum(int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"])
        if not cores:
            raise UserError("--cluster: no machine of the cluster has room for this work")
        self.count = cores
        self._idle: queue.Queue[Any] = queue.Queue()
        for _ in range(cores):
            self._idle.put(None)  # started when it is first asked

    def ask(self, items: Sequence[Any]) -> Any:
        reason = ""
        for _ in range(_TRIES):
            actor = self._idle.get()
            try:
                actor = actor or self._start()
                told, reply = self._ray.get(actor.do.remote(list(items)))
            except self._ray.exceptions.RayError as error:  # it has gone, or its machine
                reason, actor = _reason(error), None
                continue
            finally:
                self._idle.put(actor)
            if not isinstance(reply, Made):
                reason = str(reply[0])
            elif told != digest_of(items):
                reason = _CHANGED
            else:
                return reply.value
        raise UserError(f"--cluster: every machine fails: {reason}")

    def _start(self) -> Any:
        options = {"num_cpus": 1, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        actor = self._ray.remote(RayWorker).options(**options).remote(1, _waiting())
        try:
            opened = actor.open.remote(own_version(), self._work, mirrors)
            _, refused = self._ray.get(opened, timeout=_START_SECONDS)
        except self._ray.exceptions.RayError:
            self._ray.kill(actor)  # it may be late, and would keep its core
            raise
        if refused:
            raise UserError(refused)
        return actor

    def end(self) -> None:
        while not self._idle.empty():
            if (actor := self._idle.get()) is not None:
                self._ray.kill(actor)


def _reason(error: Exception) -> str:
    """What happened is in the last line of a traceback, and in the first of other messages."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1 if "ray::" in lines[0] else 0][:_REASON]


@dataclass
class _Started:
    actor: Any
    node: str = ""
    sent: str = ""
    """Hash of what it was asked."""


class RayWorkers:
    """One for each GPU, or for every few cores. They are known by numbers."""

    def __init__(self, ray: Any, work: Work, device: str) -> None:
        self._ray, self._gpu, self._work = ray, device.startswith("cuda"), work
        self._workers: dict[int, _Started] = {}
        self._asked: dict[Any, int] = {}
        """Who will answer what."""
        self._started = self._room = 0
        self._looked, self._cores = -_LOOK_SECONDS, 1

    def wanted(self) -> int:
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            self._looked = time.monotonic()
            alive = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
            if self._gpu:
                self._room = sum(int(own.get("GPU", 0)) for own in alive)
            else:
                cores = [int(own["CPU"]) for own in alive if own.get("CPU", 0) >= 1]
                self._cores = min([_CORES, *cores])
                self._room = sum(own // self._cores for own in cores)
        return self._room

    def start(self) -> int:
        room = {"num_cpus": 1, "num_gpus": 1} if self._gpu else {"num_cpus": self._cores}
        actor = self._ray.remote(RayWorker).options(max_restarts=0, scheduling_strategy="SPREAD", **room)
        self._started += 1
        started = self._workers[self._started] = _Started(actor.remote(self._cores, _waiting()))
        self._asked[started.actor.open.remote(own_version(), self._work, mirrors)] = self._started
        return self._started

    def send(self, worker: int, items: Sequence[Any]) -> None:
        to = self._workers[worker]
        to.sent = digest_of(items)
        self._asked[to.actor.do.remote(list(items))] = worker

    def replies(self) -> list[tuple[int, Reply]]:
        if not self._asked:
            time.sleep(_WAIT_SECONDS)
            return []
        answered, _ = self._ray.wait(list(self._asked), num_returns=1, timeout=_WAIT_SECONDS)
        return [self._reply(one) for one in answered]

    def _reply(self, answered: Any) -> tuple[int, Reply]:
        worker = self._asked.pop(answered)
        known = self._workers[worker]
        try:
            told, content = self._ray.get(answered)
        except self._ray.exceptions.RayError as error:
            self.stop(worker)
            alive = {node["NodeID"] for node in self._ray.nodes() if node["Alive"]}
            reason = _reason(error)
            return worker, Gone(reason, lost=known.node not in alive)
        if not known.node:
            known.node = told
            return worker, Refused(content) if content else Ready()
        if told != known.sent:
            return worker, Refused(f"--cluster: {_CHANGED}")
        return worker, content

    def stop(self, worker: int) -> None:
        known = self._workers.pop(worker)
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(known.actor)

    def end(self) -> None:
        for worker in list(self._workers):
            self.stop(worker)
