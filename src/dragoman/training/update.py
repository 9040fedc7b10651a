"""One update: the gradient of the summed loss, divided by the number of target tokens, and an optimizer step.

    host     launch 7 ─▶ launch 8 ─▶ numbers of 7 ─▶ launch 9 ─▶ …
    device            7 7 7 7 7 7 7 7 8 8 8 8 8 8 8 8 9 9 9 …

The GPU decides whether to apply an update, so the host can run one update ahead.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch.nn.utils import get_total_norm

from dragoman.shapes import Float, Tensor
from dragoman.training.batches import UpdateBatch
from dragoman.training.graph_capture import Steady
from dragoman.training.optim import set_rate
from dragoman.training.state import Training, derive_seed


@dataclass(frozen=True)
class Learnt:
    """The numbers of one update, summed over its target tokens."""

    loss: float
    nll: float
    tokens: int
    norm: float
    """Norm of the gradient of the mean loss, before clipping."""
    finite: bool


class Late:
    """The same for an update that may still be running on the device; reading a number waits for it."""

    def __init__(self, numbers: Float[Tensor, "3"], tokens: int) -> None:
        self.tokens = tokens
        on_host = torch.empty(3, dtype=numbers.dtype, pin_memory=numbers.is_cuda)
        self._numbers = on_host.copy_(numbers, non_blocking=True)
        self._copied = torch.cuda.Event() if numbers.is_cuda else None
        if self._copied is not None:
            self._copied.record()

    @cached_property
    def _found(self) -> list[float]:
        if self._copied is not None:
            self._copied.synchronize()
        return self._numbers.tolist()

    @property
    def loss(self) -> float:
        return self._found[0]

    @property
    def nll(self) -> float:
        return self._found[1]

    @property
    def norm(self) -> float:
        return self._found[2]

    @property
    def finite(self) -> bool:
        return all(map(math.isfinite, self._found))


def learn(training: Training, data: UpdateBatch) -> Learnt | Late:
    """One update, over the batches of all processes. If the loss or the gradient is not finite, nothing
    changes."""
    config, update = training.config, training.progress.update
    training.optimizer.zero_grad(set_to_none=training.recorder is None or training.recorder.anew)
    loss_sum = torch.zeros((), device=training.device)
    nll_sum = torch.zeros((), device=training.device)
    tokens = 0
    for micro in data.micro_batches:
        torch.manual_seed(derive_seed(config.seed, update, micro.number))  # so no generator is ever saved
        if training.recorder is not None and isinstance(micro.batch, Steady):
            total, nll = training.recorder(micro.batch)
        else:
            with training.part(last=micro is data.micro_batches[-1]):
                total, nll = training.passed(micro.batch, update, micro.counts)
        if micro.counts:
            loss_sum += total
            nll_sum += nll
            tokens += micro.batch.num_tokens
    training.transfer.rest(update)
    gradients = [p.grad for p in training.parameters if p.grad is not None]
    if training.ahead:
        return _step_on_device(training, get_total_norm(gradients), loss_sum, nll_sum, tokens)
    # The one moment of an update at which the host waits for the device, and for the other processes.
    norm, total, nll, tokens = training.crew.total(get_total_norm(gradients), loss_sum, nll_sum, tokens)
    training.time_share = training.crew.agreed_time(training.time_share)
    norm /= tokens
    finite = all(map(math.isfinite, (norm, total, nll)))
    if finite:
        shrink = min(1.0, config.train.clip / norm) if config.train.clip and norm else 1.0
        torch._foreach_mul_(gradients, shrink / tokens)  # pyright: ignore[reportPrivateImportUsage]
        set_rate(training.optimizer, training.rate)
        training.optimizer.step()
        if training.average:
            training.average.update(update, since=training.progress.average_since)
    return Learnt(total, nll, tokens, norm, finite)


def _step_on_device(
    training: Training, norm: Float[Tensor, ""], loss: Float[Tensor, ""], nll: Float[Tensor, ""], tokens: int
) -> Late:
    """Division, clipping and the decision about the step, all on the device: fused optimizers divide
    gradients by `grad_scale`, and change nothing if `found_inf` is 1."""
    numbers = torch.stack([loss, nll, norm / tokens])
    clip, optimizer = training.config.train.clip, training.optimizer
    finite = numbers.isfinite().all()
    shrink = (clip / numbers[2]).clamp(max=1.0) if clip else torch.ones_like(norm)  # clip / 0 becomes 1
    optimizer.grad_scale = tokens / shrink  # type: ignore[attr-defined]
    optimizer.found_inf = (~finite).to(norm.dtype)  # type: ignore[attr-defined]
    set_rate(optimizer, training.rate)
    optimizer.step()
    if training.average:
        progress = training.progress
        training.average.update(progress.update, finite, progress.average_since)
    return Late(numbers, tokens)
