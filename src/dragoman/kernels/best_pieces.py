"""The best pieces of every row of logits and their log-probabilities, with the logits read once.

A first kernel takes the maximum of every 64 logits and, of every 4,096, what the logarithm of the sum of
their exponentials is made of. The best pieces lie in the blocks with the greatest maxima; a second kernel
looks at those alone.
"""

import torch
import triton
import triton.language as tl

from dragoman.shapes import Float, Int, Tensor

_PART = 4096


@triton.jit
def _scan(logits, maxima, most, total, size, blocks, parts, part: tl.constexpr, block: tl.constexpr):
    row, number = tl.program_id(0), tl.program_id(1)
    lines: tl.constexpr = part // block
    line = tl.arange(0, lines)
    places = number * part + line[:, None] * block + tl.arange(0, block)[None, :]
    values = tl.load(logits + row.to(tl.int64) * size + places, mask=places < size, other=-float("inf"))
    of_lines = tl.max(values, axis=1)
    highest = tl.max(of_lines, axis=0)
    summed = tl.sum(tl.sum(tl.exp(values - highest), axis=1), axis=0)
    which = number * lines + line
    tl.store(maxima + row * blocks + which, of_lines, mask=which < blocks)
    tl.store(most + row * parts + number, highest)
    tl.store(total + row * parts + number, summed)


@triton.jit
def _pick(
    logits,
    maxima,
    most,
    total,
    position,
    shortest,
    scores,
    pieces,
    eos_scores,
    size,
    blocks,
    parts,
    pad_id,
    bos_id,
    eos_id,
    beams: tl.constexpr,
    count: tl.constexpr,
    count_pad: tl.constexpr,
    blocks_pad: tl.constexpr,
    parts_pad: tl.constexpr,
    block: tl.constexpr,
):
    row = tl.program_id(0)
    line = logits + row.to(tl.int64) * size
    part = tl.arange(0, parts_pad)
    tops = tl.load(most + row * parts + part, mask=part < parts, other=-float("inf"))
    sums = tl.load(total + row * parts + part, mask=part < parts, other=0.0)
    highest = tl.max(tops, axis=0)
    normaliser = highest + tl.log(tl.sum(sums * tl.exp(tops - highest), axis=0))
    eos_score = tl.load(line + eos_id) - normaliser
    tl.store(eos_scores + row, eos_score)
    place, least = tl.load(position + row // beams), tl.load(shortest + row // beams)
    not_yet = tl.where(place < least, eos_id, -1)
    # Three pieces may be forbidden, so that many more blocks are looked at.
    number, slot = tl.arange(0, blocks_pad), tl.arange(0, count_pad)
    greatest = tl.load(maxima + row * blocks + number, mask=number < blocks, other=-float("inf"))
    chosen = tl.full([count_pad], -1, tl.int32)
    for turn in tl.static_range(count + 3):
        best = tl.argmax(greatest, axis=0)
        found = tl.where(tl.max(greatest, axis=0) > -float("inf"), best.to(tl.int32), -1)
        chosen = tl.where(slot == turn, found, chosen)
        greatest = tl.where(number == best, -float("inf"), greatest)
    places = chosen[:, None] * block + tl.arange(0, block)[None, :]
    valid = (chosen[:, None] >= 0) & (places < size)
    values = tl.load(line + places, mask=valid, other=-float("inf"))
    banned = (places == pad_id) | (places == bos_id) | (places == not_yet)
    values = tl.where(banned, -float("inf"), values)
    flat = tl.reshape(values, [count_pad * block])
    ids = tl.reshape(places, [count_pad * block])
    index = tl.arange(0, count_pad * block)
    for turn in tl.static_range(count):
        value = tl.max(flat, axis=0)
        best = tl.argmax(flat, axis=0)
        piece = tl.sum(tl.where(index == best, ids, 0), axis=0)
        tl.store(scores + row * count + turn, value - normaliser)
        tl.store(pieces + row * count + turn, piece.to(tl.int64))
        flat = tl.where(index == best, -float("inf"), flat)


def best_pieces(
    logits: Float[Tensor, "N V"],
    position: Int[Tensor, "B"],
    shortest: Int[Tensor, "B"],
    beams: int,
    count: int,
    control: tuple[int, int, int],
) -> tuple[Float[Tensor, "N C"], Int[Tensor, "N C"], Float[Tensor, "N"]]:
    """Log-probabilities and pieces, best first, and the log-probability of `</s>`. `control` are the ids of
    padding and `<s>`, which never come, and of `</s>`, which does not come before
    a sentence has its `shortest` length."""
    rows, size = logits.shape
    blocks, parts = triton.cdiv(size, 64), triton.cdiv(size, _PART)
    maxima = logits.new_empty(rows, blocks)
    most, total = logits.new_empty(rows, parts), logits.new_empty(rows, parts)
    _scan[(rows, parts)](logits, maxima, most, total, size, blocks, parts, part=_PART, block=64, num_warps=4)
    scores = logits.new_empty(rows, count)
    pieces = torch.empty(rows, count, dtype=torch.long, device=logits.device)
    eos_scores = logits.new_empty(rows)
    pad_id, bos_id, eos_id = control
    _pick[(rows,)](
        logits,
        maxima,
        most,
        total,
        position,
        shortest,
        scores,
        pieces,
        eos_scores,
        size,
        blocks,
        parts,
        pad_id,
        bos_id,
        eos_id,
        beams=beams,
        count=count,
        count_pad=triton.next_power_of_2(count + 3),
        blocks_pad=triton.next_power_of_2(blocks),
        parts_pad=triton.next_power_of_2(parts),
        block=64,
        num_warps=1,
    )
    return scores, pieces, eos_scores
