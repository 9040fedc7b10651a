"""Workers on the machines of a Ray cluster: one for each GPU, or for every few cores.

Ray starts processes and carries messages; it decides nothing about the work (`schedule.py`). A worker is an
actor that holds what `Work.open` returns, a translator for example. Ray sends Python objects by pickle among
the machines of a cluster, as it does by itself: whoever can reach its ports can run code there, so they
belong in a closed network. No file is read that way.
"""

import hashlib
import logging
import os
import platform
import queue
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dragoman.cluster import require
from dragoman.cluster.schedule import Failed, Gone, Made, Ready, Refused, Reply, Schedule
from dragoman.cluster.storage import StoragePlace, mirrors
from dragoman.errors import UserError
from dragoman.system import usable_cores

T = TypeVar("T")
LOCAL = "local"
_CORES = 4
"""Of a worker without a GPU: as many as a search uses well."""
_STORE_BYTES = 200 << 20
"""What Ray keeps of messages on this machine, of `local`."""
_REACH_SECONDS = 10.0
_WAIT_SECONDS, _LOOK_SECONDS = 1.0, 1.0
_TRIES, _HIRE_SECONDS = 4, 120.0
"""How often a helper is asked, and how long it may take to start."""
_REASON = 300
"""Characters of a reason."""
_CHANGED = "a message was changed on its way to a machine"
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1"}
"""Ray reports nothing to anybody."""
_ALONE = {"RAY_prestart_worker_first_driver": "0", "RAY_AUTH_MODE": "token"}
"""Of `local`: no processes before they are asked for, and nobody else of this machine can connect."""


class Work(Protocol):
    """What a worker is sent. It is opened once a worker, on the machine of the worker."""

    def open(self) -> Callable[[Sequence[Any]], Any]: ...


class Cluster:
    """A cluster that has been connected to."""

    def __init__(self, ray: Any, tell: Callable[[str], None]) -> None:
        self._ray, self._tell = ray, tell

    def device(self, device: str) -> str:
        """What `--device` means there: the GPUs if there are any, else the cores."""
        gpus = any(node["Resources"].get("GPU") for node in self._ray.nodes() if node["Alive"])
        if device == "auto":
            return "cuda" if gpus else "cpu"
        if device not in ("cpu", "cuda") or (device == "cuda" and not gpus):
            raise UserError(f"--device {device}: no machine of the cluster has it; give auto, cpu or cuda")
        return device

    def map(self, work: Work, chunks: Iterable[list[T]], device: str, begun: int = 0) -> Iterator[Any]:
        """The result of each chunk, in their order. At most two chunks a worker are read ahead. `begun` is
        how many lines were before the first."""
        crew = _RayCrew(self._ray, work, device)
        try:
            yield from Schedule(crew, chunks, begun, self._tell).results()
        finally:
            crew.end()

    @contextmanager
    def helpers(self, work: Work) -> Iterator["Helpers"]:
        """One for each core, to be asked by several threads."""
        helpers = Helpers(self._ray, work)
        try:
            yield helpers
        finally:
            helpers.end()


@contextmanager
def open_cluster(address: str, tell: Callable[[str], None]) -> Iterator[Cluster]:
    """Connect to the cluster at an address; `local` starts one on this machine, which ends with the block."""
    os.environ.update(QUIET)  # before Ray is imported: it reads them then
    if address == LOCAL:
        for name, value in (_ALONE | {"RAY_AUTH_TOKEN": secrets.token_hex(32)}).items():
            os.environ.setdefault(name, value)
    ray = require("ray", "--cluster")
    if ray.is_initialized():
        raise UserError("--cluster: this process is connected to a cluster already")
    options: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "configure_logging": False,
    }
    if address == LOCAL:
        options |= {"num_cpus": usable_cores(), "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        options |= {"address": LOCAL, "object_store_memory": _STORE_BYTES}
    else:
        options["address"] = address
        _refuse_unless_reachable(address)
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(
            f"--cluster {address}: no cluster there ({reason}); give HOST:PORT, or local; for a cluster with "
            "a token set RAY_AUTH_MODE=token, with the same token in ~/.ray/auth_token"
        ) from None
    # Ray prints what befalls workers on standard output, among the translations; `tell` says what matters.
    ray._private.worker.print_to_stdstream = _no_message
    try:
        yield Cluster(ray, tell)
    finally:
        ray.shutdown()


def _no_message(*_: Any, **__: Any) -> None: ...


def _refuse_unless_reachable(address: str) -> None:
    """Ray would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_REACH_SECONDS).close()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not HOST:PORT"
        raise UserError(
            f"--cluster {address}: no cluster there ({reason}); give HOST:PORT, or local"
        ) from None


class RayWorker:
    """The actor."""

    def __init__(self, work: Work, mirrors: dict[Path, str]) -> None:
        self._work, self._mirrors = work, mirrors
        self._do: Callable[[Sequence[Any]], Any] | None = None

    def open(self, version: str) -> tuple[str, str]:
        """The number of its machine, and why it cannot work if it cannot."""
        node = require("ray", "--cluster").get_runtime_context().get_node_id()
        if version != (own := own_version()):
            return node, f"{platform.node()} has dragoman {own}, and here it is {version}"
        try:
            for directory, address in self._mirrors.items():
                if not directory.exists():
                    StoragePlace(address).pull(directory)
            self._do = self._work.open()
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
        except Exception as error:  # a line that nobody has thought of costs itself alone
            torch = sys.modules.get("torch")
            spent = torch is not None and torch.cuda.is_initialized()  # a GPU may not come back from an error
            return asked, Failed(f"{type(error).__name__}: {error}"[:_REASON], spent)


def own_version() -> str:
    return sys.modules["dragoman"].__version__


def digest_of(items: Sequence[Any]) -> str:
    return hashlib.sha256(repr(list(items)).encode("utf-8", "surrogatepass")).hexdigest()


class Helpers:
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
                actor = actor or self._hire()
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

    def _hire(self) -> Any:
        options = {"num_cpus": 1, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        actor = self._ray.remote(RayWorker).options(**options).remote(self._work, mirrors)
        _, refused = self._ray.get(actor.open.remote(own_version()), timeout=_HIRE_SECONDS)
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
class _Hired:
    actor: Any
    node: str = ""
    sent: str = ""
    """Hash of what it was asked."""


class _RayCrew:
    """Workers are numbers here."""

    def __init__(self, ray: Any, work: Work, device: str) -> None:
        self._ray, self._gpu, self._work = ray, device.startswith("cuda"), work
        self._staff: dict[int, _Hired] = {}
        self._asked: dict[Any, int] = {}
        """Who will answer what."""
        self._hired = self._room = 0
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

    def hire(self) -> int:
        room = {"num_cpus": 1, "num_gpus": 1} if self._gpu else {"num_cpus": self._cores}
        actor = self._ray.remote(RayWorker).options(max_restarts=0, scheduling_strategy="SPREAD", **room)
        self._hired += 1
        hired = self._staff[self._hired] = _Hired(actor.remote(self._work, mirrors))
        self._asked[hired.actor.open.remote(own_version())] = self._hired
        return self._hired

    def give(self, worker: int, items: Sequence[Any]) -> None:
        hired = self._staff[worker]
        hired.sent = digest_of(items)
        self._asked[hired.actor.do.remote(list(items))] = worker

    def replies(self) -> list[tuple[int, Reply]]:
        if not self._asked:
            time.sleep(_WAIT_SECONDS)
            return []
        answered, _ = self._ray.wait(list(self._asked), num_returns=1, timeout=_WAIT_SECONDS)
        return [self._reply(one) for one in answered]

    def _reply(self, answered: Any) -> tuple[int, Reply]:
        worker = self._asked.pop(answered)
        hired = self._staff[worker]
        try:
            told, content = self._ray.get(answered)
        except self._ray.exceptions.RayError as error:
            self.dismiss(worker)
            alive = {node["NodeID"] for node in self._ray.nodes() if node["Alive"]}
            reason = _reason(error)
            return worker, Gone(reason, lost=hired.node not in alive)
        if not hired.node:
            hired.node = told
            return worker, Refused(content) if content else Ready()
        if told != hired.sent:
            return worker, Refused(f"--cluster: {_CHANGED}")
        return worker, content

    def dismiss(self, worker: int) -> None:
        hired = self._staff.pop(worker)
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(hired.actor)

    def end(self) -> None:
        for worker in list(self._staff):
            self.dismiss(worker)
