"""Embedding and attention of a search step over slots (`models/slots.py`)."""

import torch
import triton
import triton.language as tl

from dragoman.shapes import Float, Int, Tensor

_BLOCK = 32  # positions in a block


@triton.jit
def _attend(
    out, query, query_stride, store, ancestors, count, scale, room, beams: tl.constexpr,
    key_dim: tl.constexpr, value_dim: tl.constexpr, key_pad: tl.constexpr, value_pad: tl.constexpr,
    heads: tl.constexpr, own: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    sentence, beam = row // beams, row % beams
    width: tl.constexpr = heads * (key_dim + value_dim)
    dims, value_dims = tl.arange(0, key_pad), tl.arange(0, value_pad)
    at_key, at_value = head * key_dim + dims, heads * key_dim + head * value_dim + value_dims
    inside, value_inside = dims < key_dim, value_dims < value_dim
    asked = tl.load(query + row * query_stride + head * key_dim + dims, mask=inside, other=0.0)
    asked = asked.to(tl.float32) * scale
    seen = tl.load(count + sentence)  # positions before this one, or of the memory
    most, total = -float("inf"), 0.0
    mixed = tl.zeros([value_pad], tl.float32)
    if own:  # the current position: its key and value come with the query and are stored in their slot
        beside = query + row * query_stride + heads * key_dim
        key = tl.load(beside + at_key, mask=inside, other=0.0)
        value = tl.load(beside + at_value, mask=value_inside, other=0.0)
        slot = store + ((sentence * room + seen) * beams + beam).to(tl.int64) * width
        tl.store(slot + at_key, key, mask=inside)
        tl.store(slot + at_value, value, mask=value_inside)
        most = tl.sum(asked * key.to(tl.float32), axis=0)
        total = 1.0
        mixed = value.to(tl.float32)
    for start in range(0, seen, block):
        times = start + tl.arange(0, block)
        there = times < seen
        places = (sentence * room + times).to(tl.int64)
        if own:
            parent = tl.load(ancestors + row * room + times, mask=there, other=0)
            places = places * beams + parent
        slots = store + places[:, None] * width
        keys = tl.load(slots + at_key[None, :], mask=there[:, None] & inside[None, :], other=0.0)
        values = tl.load(slots + at_value[None, :], mask=there[:, None] & value_inside[None, :], other=0.0)
        scores = tl.sum(keys.to(tl.float32) * asked[None, :], axis=1)
        scores = tl.where(there, scores, -float("inf"))
        higher = tl.maximum(most, tl.max(scores, axis=0))
        weights = tl.exp(scores - higher)
        shrink = tl.exp(most - higher)
        total = total * shrink + tl.sum(weights, axis=0)
        mixed = mixed * shrink + tl.sum(weights[:, None] * values.to(tl.float32), axis=0)
        most = higher
    found = mixed / total
    tl.store(
        out + (row * heads + head) * value_dim + value_dims, found.to(out.dtype.element_ty), mask=value_inside
    )


def attend_past(
    query_key_value: Float[Tensor, "N J"],
    past: Float[Tensor, "B C K G"],
    ancestors: Int[Tensor, "B K C"],
    position: Int[Tensor, "B"],
    heads: int,
    key_dim: int,
    value_dim: int,
    scale: float,
) -> Float[Tensor, "N G"]:
    """Store the key and value of every row in its slot, and attend to the slots of its ancestors."""
    beams, room = past.size(2), past.size(1)
    return _run(
        query_key_value, past, ancestors, position, beams, room, heads, key_dim, value_dim, scale, True
    )


def attend_memory(
    query: Float[Tensor, "N J"],
    memory: Float[Tensor, "B S G"],
    lengths: Int[Tensor, "B"],
    beams: int,
    heads: int,
    key_dim: int,
    value_dim: int,
    scale: float,
) -> Float[Tensor, "N G"]:
    """Every row attends to the memory of its sentence, without padding."""
    return _run(
        query, memory, lengths, lengths, beams, memory.size(1), heads, key_dim, value_dim, scale, False
    )


def _run(
    query: Tensor,
    store: Tensor,
    ancestors: Tensor,
    count: Tensor,
    beams: int,
    room: int,
    heads: int,
    key_dim: int,
    value_dim: int,
    scale: float,
    own: bool,
) -> Tensor:
    out = torch.empty(len(query), heads * value_dim, dtype=query.dtype, device=query.device)
    _attend[(len(query), heads)](
        out, query, query.stride(0), store, ancestors, count, scale, room, beams=beams, key_dim=key_dim,
        value_dim=value_dim, key_pad=triton.next_power_of_2(key_dim),
        value_pad=triton.next_power_of_2(value_dim), heads=heads, own=own, block=_BLOCK, num_warps=2,
    )  # fmt: skip
    return out


@triton.jit
def _embed(
    out, last, position, table, places, scale, pad_id, beams: tl.constexpr, dim: tl.constexpr,
    pad: tl.constexpr,
):  # fmt: skip
    row, dims = tl.program_id(0), tl.arange(0, pad)
    inside = dims < dim
    word, place = tl.load(last + row), tl.load(position + row // beams)
    vector = tl.load(table + word * dim + dims, mask=inside, other=0.0).to(tl.float32)
    vector = tl.where(word == pad_id, 0.0, vector)
    where = tl.load(places + place * dim + dims, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * dim + dims, (vector * scale + where).to(out.dtype.element_ty), mask=inside)


def embed(
    last: Int[Tensor, "B K"],
    position: Int[Tensor, "B"],
    table: Float[Tensor, "V D"],
    places: Float[Tensor, "T D"],
    scale: float,
    pad_id: int,
) -> Float[Tensor, "B K D"]:
    """The embedding of every piece times `scale`, plus its position."""
    dim = table.size(1)
    out = torch.empty(*last.shape, dim, dtype=table.dtype, device=table.device)
    _embed[(last.numel(),)](
        out, last, position, table, places, scale, pad_id, beams=last.size(1), dim=dim,
        pad=triton.next_power_of_2(dim),
    )  # fmt: skip
    return out
