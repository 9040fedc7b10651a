"""The processes that train one run together, as torchrun starts them. Alone, everything here costs nothing.

    torchrun ─▶ rank 0   prepares, validates, saves, reports ─────────┐ results as JSON (rendezvous.py)
                rank 1   waits ◀──────────────────────────────────────┤
                rank …   waits ◀──────────────────────────────────────┘
    an update:  every rank takes its share of the batches; the gradients and the loss are sums over all of
                them, divided once by the target tokens of all ranks

Every process holds the same weights (or its shard of them) and counts the same progress. Only gradients, five
numbers per update, and the decisions of rank 0 are communicated. No process waits for a dead one: updates
have a timeout, and rank 0 sends a heartbeat.
"""

import inspect
import json
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import timedelta
from signal import SIGINT, SIGTERM
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import GradBucket  # pyright: ignore[reportPrivateImportUsage]
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from dragoman.data.packed import Batch
from dragoman.errors import UserError
from dragoman.learning.loss import Objective
from dragoman.nn.layer import DecoderLayer, EncoderLayer
from dragoman.training.budget import StopRequest
from dragoman.training.rendezvous import (
    TIMEOUT,
    TIMEOUT_WHEN_STOPPING,
    Heartbeat,
    ProcessLost,
    Store,
    broadcast,
    meet,
    receive,
)

T = TypeVar("T")


class Crew:
    """This process among the others."""

    rank, size, local_rank = 0, 1, 0
    connected = False
    """Whether gradients travel between processes."""
    stop: StopRequest | None = None
    """Set when this process has been told to stop."""

    @property
    def first(self) -> bool:
        return self.rank == 0

    def decide(self, work: Callable[[], T]) -> T:
        """Run `work` on rank 0 and broadcast its result (JSON), or its UserError, to all ranks."""
        return work()

    def connect(self, device: torch.device, timeout: float) -> None:
        """Initialise the process group for gradients: nccl between GPUs, gloo between CPUs."""

    def ask(self, stop_signal: int | None, time_share: float) -> None:
        """Contribute this process's stop request and elapsed time to the next all-reduce of the update."""

    def agreed_signal(self, own: int | None) -> int | None:
        """The signal for which all processes stop. It may reach them in different updates."""
        return own

    def agreed_time(self, own: float) -> float:
        """The elapsed share of the time budget, by the clock of rank 0."""
        return own

    def total(self, norm: Tensor, loss: Tensor, nll: Tensor, tokens: int) -> tuple[float, float, float, int]:
        """The numbers of an update on the host, with loss and tokens summed over all processes."""
        numbers = torch.stack([norm, loss, nll]).tolist()
        return numbers[0], numbers[1], numbers[2], tokens

    def wrap(self, model: nn.Module, objective: Objective, shard: bool) -> "Passes | None":  # noqa: ARG002
        """Wrap the model so that gradients are summed over all processes."""
        return None


ALONE = Crew()


class _Loss(nn.Module):
    """Model and loss as one module: what is around a model has to see all uses of its weights, and the loss
    uses those of the projection."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, batch: Batch, update: int) -> tuple[Tensor, Tensor]:
        loss = self.objective(self.model, batch, update)
        return loss.total, loss.nll


class Passes:
    """The loss of batch after batch, differentiable; with the last of an update the ranks are added up."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def __call__(self, batch: Batch, update: int) -> tuple[Tensor, Tensor]:
        return self.module(batch, update)

    def part(self, last: bool) -> AbstractContextManager[None]:
        """Around one pass, forwards and backwards. Shards are added up with every pass: whole gradients are
        what there is no room for."""
        if last or not isinstance(self.module, DistributedDataParallel):
            return nullcontext()
        return self.module.no_sync()


class _Member(Crew):
    """One of several processes."""

    connected = True

    def __init__(self) -> None:
        self._group: dist.ProcessGroup | None = None
        self._decisions = 0
        self._asks = self._agreed = [0.0, 0.0, 0.0]
        """Stop after SIGINT, stop after SIGTERM, elapsed share of time: own values, and the agreed ones."""
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        store, _, _ = next(rendezvous("env://", timeout=timedelta(seconds=TIMEOUT)))
        attempt = meet(store, self.rank, self.size)
        self._store = dist.PrefixStore(attempt, store)  # pyright: ignore[reportPrivateImportUsage]
        self.heartbeat = Heartbeat(self._store, self.rank)

    def decide(self, work: Callable[[], T]) -> T:
        if not self.first:
            found = self._share(None)
            if "error" in found:
                raise UserError(found["error"])
            return found["value"]
        try:
            value = work()
        except UserError as error:
            self._share({"error": str(error)})
            raise
        self._share({"value": value})
        return value

    def _share(self, value: dict[str, Any] | None) -> dict[str, Any]:
        """Broadcast from rank 0."""
        self._decisions += 1
        if not self.first:
            return json.loads(receive(self._store, self._decisions, self.size - 1, self._timeout))
        text = json.dumps(value)
        broadcast(self._store, self._decisions, text)
        return json.loads(text)

    def _timeout(self) -> float:
        return TIMEOUT if self.stop is None or self.stop.signal is None else TIMEOUT_WHEN_STOPPING

    def connect(self, device: torch.device, timeout: float) -> None:
        if device.type == "cuda":
            torch.cuda.set_device(device)
            card = f"{socket.gethostname()} {torch.cuda.get_device_properties(device).uuid}"
            refuse_shared_card(self._store, card, self.rank)
        dist.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            store=self._store,
            rank=self.rank,
            world_size=self.size,
            timeout=timedelta(seconds=timeout),
            device_id=device if device.type == "cuda" else None,
        )
        self._group = dist.group.WORLD

    def ask(self, stop_signal: int | None, time_share: float) -> None:
        asked = (stop_signal == SIGINT, stop_signal == SIGTERM, time_share if self.first else 0.0)
        self._asks = [float(number) for number in asked]

    def agreed_signal(self, own: int | None) -> int | None:  # noqa: ARG002
        interrupted, terminated, _ = self._agreed
        return SIGTERM if terminated else SIGINT if interrupted else None

    def agreed_time(self, own: float) -> float:  # noqa: ARG002
        return self._agreed[2]

    def total(self, norm: Tensor, loss: Tensor, nll: Tensor, tokens: int) -> tuple[float, float, float, int]:
        numbers = torch.tensor([0.0, 0.0, tokens, *self._asks], dtype=torch.float64).to(loss.device)
        numbers[0], numbers[1] = loss, nll
        dist.all_reduce(numbers, group=self._group)
        found = torch.cat([whole(norm).to(numbers)[None], numbers]).tolist()
        self._agreed = found[4:]
        return found[0], found[1], found[2], int(found[3])

    def wrap(self, model: nn.Module, objective: Objective, shard: bool) -> Passes:
        module = _Loss(model, objective)
        assert self._group is not None, "the processes are connected before a model is wrapped"
        if shard:
            _shard(module, self._group)
            return Passes(module)
        # Tables of positions grow with the sentences that a process has seen: they are nobody else's matter.
        known = inspect.signature(DistributedDataParallel).parameters
        name = (
            "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
        )  # torch 2.11
        buffers: dict[str, Any] = {name: False}
        wrapped = DistributedDataParallel(
            module,
            process_group=self._group,
            gradient_as_bucket_view=True,
            find_unused_parameters=not objective.uses_every_weight,
            **buffers,
        )
        wrapped.register_comm_hook(self._group, _add_up)
        return Passes(wrapped)

    def may_speak(self) -> bool:
        """Whether this process is the first to report an error; only the first one prints it."""
        return self._store.add("spoken", 1) == 1


def refuse_shared_card(store: Store, card: str, rank: int) -> None:
    """Refuse a second process on the same GPU in one sentence; nccl would fail with many lines, or hang."""
    first = store.compare_set(f"card/{card}", "", str(rank)).decode()
    if int(first) != rank:
        raise UserError(
            f"train.device: processes {first} and {rank} are on the same GPU; start one process a GPU, and "
            "leave the number of the GPU to them (train.device=cuda)"
        )


def _add_up(group: dist.ProcessGroup, bucket: GradBucket) -> torch.futures.Future[Tensor]:
    """DDP hook: sum gradients without averaging. They are divided by the number of tokens later."""
    work = dist.all_reduce(bucket.buffer(), group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda future: future.value()[0])


def _shard(module: _Loss, group: dist.ProcessGroup) -> None:
    """Weights, gradients and the optimizer's state in equal parts (FSDP, Zhao et al. 2023; ZeRO-3). The
    layers of a Transformer are put together one at a time, when they are needed; all else once a pass."""
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import FSDPModule, fully_shard

    device = "cuda" if dist.get_backend(group) == "nccl" else "cpu"
    mesh = DeviceMesh.from_group(group, device)
    for layer in module.modules():
        if isinstance(layer, EncoderLayer | DecoderLayer):
            fully_shard(layer, mesh=mesh)
    fully_shard(module, mesh=mesh)
    for part in module.modules():
        if isinstance(part, FSDPModule):
            part.set_gradient_divide_factor(1.0)  # a plain sum, as in `_add_up`
            part.set_force_sum_reduction_for_comms(True)  # else by an operation that gloo does not have


def whole(tensor: Tensor) -> Tensor:
    """Gather a sharded tensor. A collective operation: all processes must call it."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor  # type: ignore[operator]


def gather(tensors: Mapping[str, Tensor], keep: bool) -> dict[str, Tensor]:
    """Gather tensors into host memory on the process that keeps them; others hold one at a time."""
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        full = whole(tensor)
        if keep:
            found[name] = full.cpu()
    return found


def parts_like(tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Shard whole tensors like the tensors of the same names."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    found = dict(tensors)
    for name, tensor in tensors.items():
        like = expected.get(name)
        if isinstance(like, DTensor) and like.shape == tensor.shape:
            found[name] = distribute_tensor(
                tensor.to(like.device), like.device_mesh, like.placements, src_data_rank=None
            )
    return found


@contextmanager
def joined_crew() -> Iterator[Crew]:
    """The crew that torchrun has started; alone where it has not.

    An error is told once, by whoever meets it first; the others leave without a word.
    """
    if "RANK" not in os.environ or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ALONE
        return
    if dist.is_initialized():
        raise UserError("torch.distributed is in use already: let dragoman open it, once at a time")
    crew = None
    try:
        crew = _Member()
        yield crew
    except UserError:
        if crew is not None and not crew.may_speak():
            raise SystemExit(2) from None
        raise
    except RuntimeError as error:
        if not _is_loss(error):
            raise
        reason = str(error) if isinstance(error, ProcessLost) else "another process has gone, so all stop"
        with suppress(RuntimeError):  # the store may be gone as well
            if crew is None or ((crew.first or isinstance(error, ProcessLost)) and crew.may_speak()):
                print(f"dragoman: {reason}; the last checkpoint is whole", file=sys.stderr)
        raise SystemExit(1) from None
    finally:
        if crew is not None:
            crew.heartbeat.end()
    if dist.is_initialized():
        dist.destroy_process_group()


def _is_loss(error: RuntimeError) -> bool:
    """Whether the error means that the connection to another process was lost."""
    known = (ProcessLost, dist.DistError)
    return isinstance(error, known) or any(word in str(error) for word in ("gloo", "NCCL", "c10d"))
