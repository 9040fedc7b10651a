"""Connecting to a Ray cluster, and what its machines do with chunks (`workers.py`).

Ray starts processes and carries messages; it decides nothing about the work (`schedule.py`). Ray sends Python
objects by pickle among the machines of a cluster, as it does by itself: whoever can reach its ports can run
code there, so they belong in a closed network. No file is read that way.
"""

import logging
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from dragoman.cluster import require
from dragoman.cluster.schedule import Schedule
from dragoman.cluster.workers import RayWorkers, Work, WorkerPool
from dragoman.errors import UserError
from dragoman.system import usable_cores

T = TypeVar("T")
LOCAL = "local"
_STORE_BYTES = 200 << 20
"""What Ray keeps of messages on this machine, of `local`."""
_REACH_SECONDS = 10.0
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1"}
"""Ray reports nothing to anybody."""
_ALONE = {"RAY_prestart_worker_first_driver": "0", "RAY_AUTH_MODE": "token"}
"""Of `local`: no processes before they are asked for, and nobody else of this machine can connect."""


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
        """The result of each chunk, in their order. At most two chunks per worker are read ahead. `begun` is
        how many lines were before the first."""
        workers = RayWorkers(self._ray, work, device)
        try:
            yield from Schedule(workers, chunks, begun, self._tell).results()
        finally:
            workers.end()

    @contextmanager
    def pool(self, work: Work) -> Iterator[WorkerPool]:
        """A worker for each core, to be asked by several threads."""
        pool = WorkerPool(self._ray, work)
        try:
            yield pool
        finally:
            pool.end()


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
    # Ray prints about workers on standard output, among the translations; `tell` says what matters.
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
