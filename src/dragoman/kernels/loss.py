"""Losses from logits, whose gradients replace the logits: cross-entropy and R-Drop.

Cross-entropy reads each row twice, the second time from the cache, and writes it once.

R-Drop (`nn/r_drop.py`) reads two rows of logits three times and writes them once. With their
log-probabilities log p and log q, the gradient of KL(p‖q) + KL(q‖p) by the logits of p is

    p · (log p − log q − KL(p‖q)) + p − q
"""

import torch
import triton
import triton.language as tl

from dragoman.shapes import Float, Int, Tensor

_BLOCK, _WARPS = 8192, 8


@triton.jit
def read_logits(logits, bias, columns, inside, has_bias: tl.constexpr):
    """A block of a row in float32; columns outside are −∞."""
    z = tl.load(logits + columns, mask=inside, other=-float("inf")).to(tl.float32)
    if has_bias:
        z += tl.load(bias + columns, mask=inside, other=0.0).to(tl.float32)
    return z


@triton.jit
def summed_up(logits, bias, size: tl.constexpr, block: tl.constexpr, has_bias: tl.constexpr):
    """Log-sum-exp and sum of a row."""
    highest, mass, total = -float("inf"), 0.0, 0.0
    for start in range(0, size, block):
        columns = start + tl.arange(0, block)
        inside = columns < size
        z = read_logits(logits, bias, columns, inside, has_bias)
        higher = tl.maximum(highest, tl.max(z, axis=0))
        mass = mass * tl.exp(highest - higher) + tl.sum(tl.exp(z - higher), axis=0)
        total += tl.sum(tl.where(inside, z, 0.0), axis=0)
        highest = higher
    return highest + tl.log(mass), total


@triton.jit
def _cross_entropy(
    logits, bias, target, loss, nll, ignore_id, smoothing, size: tl.constexpr, width: tl.constexpr,
    block: tl.constexpr, has_bias: tl.constexpr, sloped: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    logits += row * width
    expected = tl.load(target + row)
    counted = expected != ignore_id
    chosen = tl.load(logits + expected).to(tl.float32)  # before the row is overwritten
    if has_bias:
        chosen += tl.load(bias + expected).to(tl.float32)
    lse, total = summed_up(logits, bias, size, block, has_bias)
    plain = lse - chosen
    spread = lse - total / size
    tl.store(nll + row, tl.where(counted, plain, 0.0))
    tl.store(loss + row, tl.where(counted, (1 - smoothing) * plain + smoothing * spread, 0.0))
    if sloped:
        for start in range(0, width, block):
            columns = start + tl.arange(0, block)
            inside = columns < size
            z = read_logits(logits, bias, columns, inside, has_bias)
            slope = tl.exp(z - lse) - smoothing / size
            slope = tl.where(columns == expected, slope - (1 - smoothing), slope)
            slope = tl.where(counted & inside, slope, 0.0)
            tl.store(logits + columns, slope.to(logits.dtype.element_ty), mask=columns < width)


def block_of(size: int) -> int:
    """The number of logits in a block."""
    return min(_BLOCK, triton.next_power_of_2(size))


def smoothed_cross_entropy(
    logits: Float[Tensor, "R F"],
    bias: Float[Tensor, "V"] | None,
    target: Int[Tensor, "R"],
    ignore_id: int,
    smoothing: float,
    sloped: bool,
    size: int,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Summed loss and negative log-likelihood. If `sloped`, the gradient of the loss overwrites the logits.
    Rows whose target is `ignore_id` are ignored, and so are columns from `size` on, which are padding."""
    width = logits.size(1)
    sizes = {"size": size, "width": width, "block": block_of(width)}
    return sums_of_rows(_cross_entropy, (logits,), bias, target, (ignore_id, smoothing), sizes, sloped)


def sums_of_rows(
    kernel: triton.JITFunction,
    logits: tuple[Tensor, ...],
    bias: Float[Tensor, "V"] | None,
    target: Int[Tensor, "R"],
    numbers: tuple[float, ...],
    sizes: dict[str, int],
    sloped: bool,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Run a kernel with one program for every target, and sum its losses and likelihoods."""
    loss = torch.empty(2, len(target), dtype=torch.float32, device=target.device)
    kernel[(len(target),)](
        *logits, logits[0] if bias is None else bias, target, loss[0], loss[1], *numbers, **sizes,
        has_bias=bias is not None, sloped=sloped, num_warps=_WARPS,
    )  # fmt: skip
    total, nll = loss.sum(dim=1)
    return total, nll


@triton.jit
def _log_probabilities(first, second, bias, lse_p, lse_q, columns, inside, has_bias: tl.constexpr):
    """A block of log p, of log q, and of their difference."""
    log_p = read_logits(first, bias, columns, inside, has_bias) - lse_p
    log_q = read_logits(second, bias, columns, inside, has_bias) - lse_q
    return log_p, log_q, tl.where(inside, log_p - log_q, 0.0)


@triton.jit
def _r_drop(
    first, second, bias, target, loss, nll, ignore_id, smoothing, weight, size: tl.constexpr,
    block: tl.constexpr, has_bias: tl.constexpr, sloped: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    first += row * size
    second += row * size
    expected = tl.load(target + row)
    counted = expected != ignore_id
    chosen = tl.load(first + expected).to(tl.float32) + tl.load(second + expected).to(tl.float32)
    if has_bias:
        chosen += 2 * tl.load(bias + expected).to(tl.float32)
    lse_p, total_p = summed_up(first, bias, size, block, has_bias)
    lse_q, total_q = summed_up(second, bias, size, block, has_bias)
    p_from_q, q_from_p = 0.0, 0.0
    for start in range(0, size, block):
        columns = start + tl.arange(0, block)
        inside = columns < size
        log_p, log_q, apart = _log_probabilities(first, second, bias, lse_p, lse_q, columns, inside, has_bias)
        p_from_q += tl.sum(tl.exp(log_p) * apart, axis=0)
        q_from_p -= tl.sum(tl.exp(log_q) * apart, axis=0)
    plain = lse_p + lse_q - chosen
    spread = lse_p + lse_q - (total_p + total_q) / size
    whole = (1 - smoothing) * plain + smoothing * spread + weight * (p_from_q + q_from_p) / 2
    tl.store(nll + row, tl.where(counted, plain / 2, 0.0))
    tl.store(loss + row, tl.where(counted, whole / 2, 0.0))
    if sloped:
        for start in range(0, size, block):
            columns = start + tl.arange(0, block)
            inside = columns < size
            log_p, log_q, apart = _log_probabilities(
                first, second, bias, lse_p, lse_q, columns, inside, has_bias
            )
            p, q = tl.exp(log_p), tl.exp(log_q)
            wanted = tl.where(columns == expected, 1 - smoothing, 0.0) + smoothing / size
            slope_p = p - wanted + weight / 2 * (p * (apart - p_from_q) + p - q)
            slope_q = q - wanted + weight / 2 * (q * (-apart - q_from_p) + q - p)
            slope_p = tl.where(counted, slope_p / 2, 0.0).to(first.dtype.element_ty)
            slope_q = tl.where(counted, slope_q / 2, 0.0).to(second.dtype.element_ty)
            tl.store(first + columns, slope_p, mask=inside)
            tl.store(second + columns, slope_q, mask=inside)


def r_drop_sums(
    logits: Float[Tensor, "2 R V"],
    bias: Float[Tensor, "V"] | None,
    target: Int[Tensor, "R"],
    ignore_id: int,
    smoothing: float,
    weight: float,
    sloped: bool,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Summed loss of two passes and their mean negative log-likelihood. If `sloped`, the gradient of the loss
    overwrites the logits. Rows whose target is `ignore_id` are ignored."""
    size = logits.size(2)
    numbers, sizes = (ignore_id, smoothing, weight), {"size": size, "block": block_of(size)}
    return sums_of_rows(_r_drop, (logits[0], logits[1]), bias, target, numbers, sizes, sloped)
