"""One step of a beam search: the best pieces of every row of logits, and what becomes of a sentence.

`best_pieces` reads the logits once. A first kernel computes the maximum of every 64 logits and partial
log-sum-exps of every 4,096. The best pieces are in the blocks with the greatest maxima; a second kernel reads
only those. `decide` does in one kernel what `decode/gpu/continuous_beam.py` does in torch.
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
    logits, maxima, most, total, position, shortest, scores, pieces, eos_scores, size, blocks, parts,
    pad_id, bos_id, eos_id, beams: tl.constexpr, count: tl.constexpr, count_pad: tl.constexpr,
    blocks_pad: tl.constexpr, parts_pad: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
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
        logits, maxima, most, total, position, shortest, scores, pieces, eos_scores, size, blocks, parts,
        pad_id, bos_id, eos_id, beams=beams, count=count, count_pad=triton.next_power_of_2(count + 3),
        blocks_pad=triton.next_power_of_2(blocks), parts_pad=triton.next_power_of_2(parts), block=64,
        num_warps=1,
    )  # fmt: skip
    return scores, pieces, eos_scores


@triton.jit
def _decide(
    scores, pieces, eos_scores, last, sums, position, ancestors, limits, ended, done, tokens, parents,
    own_scores, found_rank, found_at, found_eos, weights, room, eos_id, beams: tl.constexpr,
    n_best: tl.constexpr, by_bound: tl.constexpr, by_count: tl.constexpr, by_live: tl.constexpr,
    count_pad: tl.constexpr, all_pad: tl.constexpr, best_pad: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    sentence = tl.program_id(0)
    count: tl.constexpr = 2 * beams
    here = tl.load(position + sentence)
    limit = tl.load(limits + sentence)
    was_done = tl.load(done + sentence) != 0
    cut = here + 1 == limit
    nothing = -float("inf")

    # The 2K best extensions of all beams.
    entry = tl.arange(0, all_pad)
    there = entry < beams * count
    own = tl.load(scores + sentence * beams * count + entry, mask=there, other=nothing)
    piece = tl.load(pieces + sentence * beams * count + entry, mask=there, other=0)
    before = tl.load(sums + sentence * beams + entry // count, mask=there, other=nothing)
    rest = before + own
    turn = tl.arange(0, count_pad)
    best = tl.full([count_pad], nothing, tl.float32)
    best_own = tl.zeros([count_pad], tl.float32)
    best_piece = tl.zeros([count_pad], tl.int64)
    best_parent = tl.zeros([count_pad], tl.int64)
    for number in tl.static_range(count):
        value = tl.max(rest, axis=0)
        place = tl.argmax(rest, axis=0)
        is_it = entry == place
        best = tl.where(turn == number, value, best)
        best_own = tl.where(turn == number, tl.sum(tl.where(is_it, own, 0.0), axis=0), best_own)
        best_piece = tl.where(turn == number, tl.sum(tl.where(is_it, piece, 0), axis=0), best_piece)
        best_parent = tl.where(turn == number, (place // count).to(tl.int64), best_parent)
        rest = tl.where(is_it, nothing, rest)

    # What ends: `</s>` among the K first, or at the greatest length every beam.
    ends = (best_piece == eos_id) & (turn < count)
    eos = tl.load(eos_scores + sentence * beams + turn, mask=turn < beams, other=0.0)
    live = tl.load(sums + sentence * beams + turn, mask=turn < beams, other=nothing)
    stopped = tl.where(ends & (turn < beams), best, nothing)
    ending = tl.where(cut, live + eos, stopped)
    ending_parent = tl.where(cut, turn.to(tl.int64), best_parent)
    ending_eos = tl.where(cut, eos, best_own)
    rank = tl.where(was_done, nothing, ending * tl.load(weights + here + 1))
    at = ((here + 1) * beams + ending_parent) * 2 + cut.to(tl.int64)

    # The n best that have ended so far; of equals the earlier one.
    number_kept = tl.arange(0, best_pad)
    kept = number_kept < n_best
    old_rank = tl.load(found_rank + sentence * n_best + number_kept, mask=kept, other=nothing)
    old_at = tl.load(found_at + sentence * n_best + number_kept, mask=kept, other=0)
    old_eos = tl.load(found_eos + sentence * n_best + number_kept, mask=kept, other=0.0)
    worst = nothing
    tl.debug_barrier()
    for number in tl.static_range(n_best):
        old_value, new_value = tl.max(old_rank, axis=0), tl.max(rank, axis=0)
        old_place, new_place = tl.argmax(old_rank, axis=0), tl.argmax(rank, axis=0)
        from_old = number_kept == tl.where(old_value >= new_value, old_place, -1)
        from_new = turn == tl.where(old_value >= new_value, -1, new_place)
        worst = tl.maximum(old_value, new_value)
        chosen_at = tl.sum(tl.where(from_old, old_at, 0), axis=0) + tl.sum(tl.where(from_new, at, 0), axis=0)
        chosen_eos = tl.sum(tl.where(from_old, old_eos, 0.0), axis=0)
        chosen_eos += tl.sum(tl.where(from_new, ending_eos, 0.0), axis=0)
        tl.store(found_rank + sentence * n_best + number, worst)
        tl.store(found_at + sentence * n_best + number, chosen_at)
        tl.store(found_eos + sentence * n_best + number, chosen_eos)
        old_rank = tl.where(from_old, nothing, old_rank)
        rank = tl.where(from_new, nothing, rank)
    number_ended = tl.load(ended + sentence) + tl.sum((stopped > nothing).to(tl.int64), axis=0)
    tl.store(ended + sentence, number_ended)

    # What goes on: the K first of the others, each in its new place.
    going = (ends == 0) & (turn < count)
    new_place = tl.cumsum(going.to(tl.int32), axis=0) - 1
    new_place = tl.where(going & (new_place < beams), new_place, count_pad)
    highest = tl.max(tl.where(new_place == 0, best, nothing), axis=0)
    goes = new_place < beams
    line = sentence * room + here
    tl.store(sums + sentence * beams + turn, nothing, mask=turn < beams)
    tl.debug_barrier()
    tl.store(sums + sentence * beams + new_place, best, mask=goes)
    tl.store(last + sentence * beams + new_place, best_piece, mask=goes)
    tl.store(tokens + line * beams + new_place, best_piece, mask=goes)
    tl.store(parents + line * beams + new_place, best_parent, mask=goes)
    tl.store(own_scores + line * beams + new_place, best_own, mask=goes)

    # Is the sentence done?
    stop = tl.where(cut, 1, 0)
    if by_bound:
        hopeless = tl.where(worst >= highest * tl.load(weights + limit), 1, 0)
        if by_count:
            enough = number_ended >= beams
            if by_live:
                enough = enough & (worst >= highest * tl.load(weights + here + 1))
            hopeless = tl.where(enough, 1, hopeless)
        stop = tl.where(worst > nothing, tl.maximum(stop, hopeless), stop)
    stop = tl.where(was_done, 1, stop)
    tl.store(done + sentence, stop.to(tl.uint8))
    following = here + 1 - stop
    tl.store(position + sentence, following)

    # Every new place takes over its parent's ancestors.
    for start in range(0, here + 1, block):
        times = start + tl.arange(0, block)
        past = (goes[:, None]) & (times[None, :] <= here)
        old = tl.load(
            ancestors + (sentence * beams + best_parent[:, None]) * room + times[None, :], mask=past, other=0
        )
        tl.debug_barrier()
        tl.store(ancestors + (sentence * beams + new_place[:, None]) * room + times[None, :], old, mask=past)
        tl.debug_barrier()
    tl.store(ancestors + (sentence * beams + new_place) * room + following, new_place.to(tl.int64), mask=goes)


def decide(
    scores: Float[Tensor, "N C"],
    pieces: Int[Tensor, "N C"],
    eos_scores: Float[Tensor, "N"],
    state: tuple[Tensor, ...],
    n_best: int,
    eos_id: int,
    by_bound: bool,
    by_count: bool,
    by_live: bool,
) -> None:
    """One further position. `state` are the tensors of a `Pool`, in the order of the kernel."""
    tokens = state[7]
    sentences, room, beams = tokens.shape
    count = 2 * beams
    _decide[(sentences,)](
        scores, pieces, eos_scores, *state, room, eos_id, beams=beams, n_best=n_best, by_bound=by_bound,
        by_count=by_count, by_live=by_live, count_pad=triton.next_power_of_2(count),
        all_pad=triton.next_power_of_2(count * beams), best_pad=triton.next_power_of_2(n_best), block=32,
        num_warps=1,
    )  # fmt: skip
