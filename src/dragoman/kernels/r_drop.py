"""The loss of R-Drop from two rows of logits, and its gradients in their place (`nn/r_drop.py`).

With the log-probabilities of both rows, log p and log q, the slope of KL(p‖q) + KL(q‖p) by the logits of p is

    p · (log p − log q − KL(p‖q)) + p − q

Each row is read three times, the last two times from the cache, and written once.
"""

import triton
import triton.language as tl

from dragoman.kernels.loss import block_of, read_logits, summed_up, sums_of_rows
from dragoman.shapes import Float, Int, Tensor


@triton.jit
def _log_probabilities(first, second, bias, lse_p, lse_q, columns, inside, has_bias: tl.constexpr):
    """A part of log p and of log q, and how far they are apart."""
    log_p = read_logits(first, bias, columns, inside, has_bias) - lse_p
    log_q = read_logits(second, bias, columns, inside, has_bias) - lse_q
    return log_p, log_q, tl.where(inside, log_p - log_q, 0.0)


@triton.jit
def _r_drop(
    first,
    second,
    bias,
    target,
    loss,
    nll,
    ignore_id,
    smoothing,
    weight,
    size: tl.constexpr,
    block: tl.constexpr,
    has_bias: tl.constexpr,
    sloped: tl.constexpr,
):
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
    """Summed loss of two passes and their mean negative log-likelihood; where `sloped`, the logits become the
    gradient of the loss by them. Rows whose target is `ignore_id` count for nothing."""
    size = logits.size(2)
    numbers, sizes = (ignore_id, smoothing, weight), {"size": size, "block": block_of(size)}
    return sums_of_rows(_r_drop, (logits[0], logits[1]), bias, target, numbers, sizes, sloped)
