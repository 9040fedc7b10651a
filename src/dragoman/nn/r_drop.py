"""R-Drop (Liang et al. 2021): two passes with different dropout should predict the same distributions.

With the distributions p and q of the two passes at one position, and their cross-entropies h_p and h_q with
the target (optionally smoothed), the paper's loss (equation 4) is

    h_p + h_q + w · (KL(p‖q) + KL(q‖p)) / 2

Here it is halved, so that without dropout it equals the cross-entropy, and losses and clipping stay
comparable. Σ_v (p_v − q_v)(log p_v − log q_v) is the sum of both divergences.

The logits of both passes would be twice the largest tensor of training. They are computed a few rows at a
time, dropped, and computed again in the backward pass. On a GPU a kernel replaces them by their gradients at
once, as for plain cross-entropy (`nn/loss.py`).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from dragoman.nn.loss import add_product, cross_entropy, in_autocast_type, scaled
from dragoman.shapes import Float, Int, Tensor

_LOGITS_AT_ONCE = {"cpu": 1 << 21, "cuda": 1 << 27}

Project = Callable[[Tensor], Tensor]


def r_drop(
    first: Float[Tensor, "R D"],
    second: Float[Tensor, "R D"],
    project: Project,
    vocab_size: int,
    target: Int[Tensor, "R"],
    ignore_id: int,
    smoothing: float,
    weight: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """The summed loss of two passes, and the sum of their mean negative log-likelihood, without a gradient.

    `project` maps hidden vectors to logits. Rows whose target is `ignore_id` are ignored.
    """

    def of_chunk(a: Tensor, b: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
        logits_a, logits_b = (_wide(project(hidden)) for hidden in (a, b))
        losses = [cross_entropy(logits, expected, ignore_id, smoothing) for logits in (logits_a, logits_b)]
        apart = symmetric_divergence(logits_a, logits_b).where(expected != ignore_id, 0).sum()
        total = (losses[0][0] + losses[1][0] + weight * apart / 2) / 2
        return total, (losses[0][1] + losses[1][1]).detach() / 2

    rows = max(1, _LOGITS_AT_ONCE.get(first.device.type, 1 << 24) // vocab_size)
    chunks = zip(first.split(rows), second.split(rows), target.split(rows), strict=True)
    # Nothing in a chunk is random, so no generator state has to be kept.
    found = [checkpoint(of_chunk, *c, use_reentrant=False, preserve_rng_state=False) for c in chunks]
    total, nll = (torch.stack(sums).sum() for sums in zip(*found, strict=True))
    return total, nll


def projected_r_drop(
    passes: Float[Tensor, "2 R D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, "V"] | None,
    target: Int[Tensor, "R"],
    ignore_id: int,
    smoothing: float,
    r_drop_weight: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """The two sums, computed by a Triton kernel."""
    passes = in_autocast_type(passes)
    options = (target, ignore_id, smoothing, r_drop_weight)
    total, nll = _ProjectedRDrop.apply(passes, weight, bias, *options)  # type: ignore[misc]
    return total, nll


class _ProjectedRDrop(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        passes: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target: Tensor,
        ignore_id: int,
        smoothing: float,
        r_drop_weight: float,
    ) -> tuple[Tensor, Tensor]:
        from dragoman.kernels.loss import r_drop_sums

        wanted = any(ctx.needs_input_grad[:3])
        compute_weight = weight.to(passes.dtype)  # a copy in bf16 under autocast, itself otherwise
        grad_passes, grad_weight = torch.empty_like(passes), torch.zeros_like(weight)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        sums = passes.new_zeros(2, dtype=torch.float32)
        rows = max(1, _LOGITS_AT_ONCE["cuda"] // len(weight))
        with torch.autocast(passes.device.type, enabled=False):
            for start in range(0, len(target), rows):
                chunk = slice(start, start + rows)
                part = passes[:, chunk]  # 2 R D
                logits = part @ compute_weight.t()
                options = (ignore_id, smoothing, r_drop_weight, wanted)
                sums += torch.stack(r_drop_sums(logits, bias, target[chunk], *options))
                if not wanted:
                    continue
                grad_passes[:, chunk] = logits @ compute_weight  # the logits are gradients now
                add_product(grad_weight, logits.flatten(0, 1), part.flatten(0, 1), weight.dtype)
                if grad_bias is not None:
                    grad_bias += logits.sum((0, 1), dtype=torch.float32)
        ctx.save_for_backward(grad_passes, grad_weight, grad_bias)
        total, nll = sums.unbind()
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    @once_differentiable
    def backward(  # type: ignore[override]  # the decorator hides the names of the parameters
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        return (*scaled(ctx.saved_tensors, grad_outputs[0]), None, None, None, None)


def symmetric_divergence(a: Float[Tensor, "R V"], b: Float[Tensor, "R V"]) -> Float[Tensor, "R"]:
    """KL(p‖q) + KL(q‖p) of the distributions of two rows of logits."""
    log_p, log_q = a.log_softmax(dim=1), b.log_softmax(dim=1)
    return ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(dim=1)


def _wide(logits: Tensor) -> Tensor:
    return logits if logits.dtype == torch.float64 else logits.float()
