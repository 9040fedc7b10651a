"""Cross-entropy of a projection over the vocabulary, without holding all logits at once.

The logits of B·T positions over V pieces are by far the largest tensor of training. They are computed a few
rows at a time. Each chunk gives its loss and, while it is in the cache, its gradients, and is dropped. The
backward pass only scales the gradients of the forward pass.

With label smoothing ε (Szegedy et al. 2016) the target distribution is q = (1 − ε)·one-hot + ε/V, so that

    loss = lse(z) − (1 − ε)·z_target − ε·mean(z)          d loss / d z = softmax(z) − q
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from dragoman.kernels import usable
from dragoman.shapes import Float, Int, Tensor

_CHUNK_ELEMENTS = {"cpu": 1 << 20, "cuda": 1 << 29}  # logits at a time: fits the cache, fills the card
_ALIGNED, _FILLED = 8, 128
"""Half-precision numbers in 16 bytes; columns of a tile of a matrix product."""


def projected_cross_entropy(
    hidden: Float[Tensor, "R D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, "V"] | None,
    target: Int[Tensor, "R"],
    ignore_id: int,
    smoothing: float = 0.0,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """The summed (smoothed) loss, and the summed negative log-likelihood, which has no gradient.

    Rows whose target is `ignore_id` are ignored.
    """
    hidden = in_autocast_type(hidden)
    loss, nll = _ProjectedCrossEntropy.apply(hidden, weight, bias, target, ignore_id, smoothing)  # type: ignore[misc]
    return loss, nll


class _ProjectedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target: Tensor,
        ignore_id: int,
        smoothing: float,
    ) -> tuple[Tensor, Tensor]:
        wanted = any(ctx.needs_input_grad[:3])
        size = len(weight)
        compute_weight = _for_products(weight, hidden)
        wide = torch.float64 if hidden.dtype == torch.float64 else torch.float32
        loss = hidden.new_zeros((), dtype=wide)
        nll = hidden.new_zeros((), dtype=wide)
        grad_hidden = torch.empty_like(hidden) if wanted else None
        grad_weight = None
        grad_bias = torch.zeros_like(bias) if wanted and bias is not None else None
        rows = _rows_of_a_chunk(len(hidden), len(compute_weight), hidden.device.type)
        with torch.autocast(hidden.device.type, enabled=False):
            for first in range(0, len(hidden), rows):
                part, expected = hidden[first : first + rows], target[first : first + rows]
                logits = part @ compute_weight.t()  # rows V, or some more
                chunk_loss, chunk_nll, slope = _sums(
                    logits, bias, expected, ignore_id, smoothing, wanted, size
                )
                loss += chunk_loss
                nll += chunk_nll
                if slope is None or grad_hidden is None:
                    continue
                if grad_bias is not None:
                    grad_bias += slope.sum(0, dtype=wide)[:size]
                slope = slope.to(hidden.dtype)
                torch.mm(slope, compute_weight, out=grad_hidden[first : first + rows])
                grad_weight = add_product(grad_weight, slope, part, weight.dtype)
        if grad_weight is not None:
            grad_weight = grad_weight[:size]
        elif wanted:
            grad_weight = torch.zeros_like(weight)  # no rows
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(  # type: ignore[override]  # the decorator hides the names of the parameters
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        return (*scaled(ctx.saved_tensors, grad_outputs[0]), None, None, None)


def widest(device: torch.device) -> torch.dtype:
    """The type to add up many numbers in: Apple's GPUs (mps) have no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def in_autocast_type(x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
    """The input as autocast would convert it; custom autograd functions have to do this themselves."""
    device = x.device.type
    return x.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else x


def scaled(gradients: Iterable[Tensor | None], grad_loss: Float[Tensor, ""]) -> list[Tensor | None]:
    """Gradients of the forward pass times the gradient of its loss."""
    return [None if found is None else found * grad_loss.to(found.dtype) for found in gradients]


def _for_products(weight: Float[Tensor, "V D"], hidden: Float[Tensor, "R D"]) -> Float[Tensor, "F D"]:
    """The weight in the type of the hidden vectors: a copy in bfloat16 under autocast, else itself.

    For kernels it is padded with zeros: a GPU multiplies at full speed only if each row of logits begins at a
    multiple of 16 bytes, and GPT-2 has 50,257 pieces."""
    size = len(weight)
    if size % _ALIGNED == 0 or not usable(hidden):
        return weight.to(hidden.dtype)
    filled = hidden.new_zeros(-(-size // _FILLED) * _FILLED, weight.size(1))
    filled[:size] = weight
    return filled


def _rows_of_a_chunk(rows: int, size: int, device: str) -> int:
    """Chunks of equal size: a short last chunk would leave a GPU half idle."""
    most = max(1, _CHUNK_ELEMENTS.get(device, 1 << 24) // size)
    chunks = max(1, -(-rows // most))
    even = -(-rows // chunks)
    return min(most, -(-even // _ALIGNED) * _ALIGNED) if chunks > 1 else max(1, rows)


def add_product(
    total: Float[Tensor, "F D"] | None,
    slope: Float[Tensor, "R F"],
    part: Float[Tensor, "R D"],
    kind: torch.dtype,
) -> Float[Tensor, "F D"]:
    """total + slopeᵀ · part; on a GPU accumulated in the type of the weight."""
    if total is not None and total.dtype == slope.dtype:
        return total.addmm_(slope.t(), part)
    if slope.is_cuda and slope.dtype != kind:
        product = torch.mm(slope.t(), part, out_dtype=kind)
    else:
        product = (slope.t() @ part).to(kind)
    return product if total is None else total.add_(product)


def cross_entropy(
    logits: Float[Tensor, "R V"], target: Int[Tensor, "R"], ignore_id: int, smoothing: float
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """The two sums for given logits."""
    counted = target != ignore_id
    lse = logits.logsumexp(dim=1)
    nll = (lse - logits.gather(1, target[:, None])[:, 0]).where(counted, 0)
    if not smoothing:
        return nll.sum(), nll.sum()
    spread = (lse - logits.mean(dim=1)).where(counted, 0)
    return (1 - smoothing) * nll.sum() + smoothing * spread.sum(), nll.sum()


def _sums(
    logits: Float[Tensor, "R F"],
    bias: Float[Tensor, "V"] | None,
    target: Int[Tensor, "R"],
    ignore_id: int,
    smoothing: float,
    wanted: bool,
    size: int,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""], Float[Tensor, "R F"] | None]:
    """Both sums and, if `wanted`, the gradient of the loss, which overwrites the logits. Only a kernel gets
    more columns than the `size` of the vocabulary."""
    if usable(logits):
        from dragoman.kernels.loss import smoothed_cross_entropy

        loss, nll = smoothed_cross_entropy(logits, bias, target, ignore_id, smoothing, wanted, size)
        return loss, nll, logits if wanted else None
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if bias is not None:
        logits += bias
    loss, nll = cross_entropy(logits, target, ignore_id, smoothing)
    return loss, nll, _slope(logits, target, ignore_id, smoothing) if wanted else None


def _slope(
    logits: Float[Tensor, "R V"], target: Int[Tensor, "R"], ignore_id: int, smoothing: float
) -> Float[Tensor, "R V"]:
    slope = torch.softmax(logits, dim=1, out=logits)
    if smoothing:
        slope -= smoothing / slope.size(1)
    slope.scatter_add_(1, target[:, None], slope.new_full((len(target), 1), smoothing - 1))
    return slope.masked_fill_((target == ignore_id)[:, None], 0)
