"""Attention inside the sequences of a packed batch: one program for every sequence and head.

A program holds all keys of a sequence, so the backward pass recomputes the softmax and writes the gradients
of queries, keys and values once each. Sequences are short (`LONGEST_SEQUENCE`). Batches of similar lengths
waste little of a tile.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from dragoman.kernels import tile_size
from dragoman.shapes import Float, Int, Tensor

_SMALLEST_TILE = 16  # of a matrix product
_WARPS = {16: 1, 32: 1, 64: 4, 128: 8, 256: 8}  # by the number of keys in a tile
_WHOLE, _ROWS = 128, 32  # up to _WHOLE keys, all queries at once; with more keys, _ROWS at a time


@triton.jit
def _tile(
    tensor, stride, first, count, column, start, rows: tl.constexpr, dim: tl.constexpr, pad: tl.constexpr
):
    """Addresses and mask of the vectors of one sequence and head from position `start` on."""
    row, dims = start + tl.arange(0, rows), tl.arange(0, pad)
    at = tensor + (first + row).to(tl.int64)[:, None] * stride + column + dims[None, :]
    return at, (row < count)[:, None] & (dims < dim)[None, :]


@triton.jit
def _load(
    tensor, stride, first, count, column, start, rows: tl.constexpr, dim: tl.constexpr, pad: tl.constexpr
):
    at, real = _tile(tensor, stride, first, count, column, start, rows, dim, pad)
    return tl.load(at, mask=real, other=0.0)


@triton.jit
def _store(
    value, tensor, stride, first, count, column, start, rows: tl.constexpr, dim: tl.constexpr,
    pad: tl.constexpr,
):  # fmt: skip
    at, real = _tile(tensor, stride, first, count, column, start, rows, dim, pad)
    tl.store(at, value.to(tensor.dtype.element_ty), mask=real)


@triton.jit
def _spans(asked_starts, memory_starts, sequence):
    """Start and number of the queries of a sequence, and of its memory."""
    first, there = tl.load(asked_starts + sequence), tl.load(memory_starts + sequence)
    count = tl.load(asked_starts + sequence + 1) - first
    known = tl.load(memory_starts + sequence + 1) - there
    return first, count, there, known


@triton.jit
def _weights(
    query, key, start, count, scale, causal: tl.constexpr, queries: tl.constexpr, keys: tl.constexpr
):
    scores = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
    row, column = start + tl.arange(0, queries), tl.arange(0, keys)
    seen = (column < count)[None, :]
    if causal:
        seen = seen & (column[None, :] <= row[:, None])
    scores = tl.where(seen, scores, -float("inf"))
    highest = tl.max(scores, axis=1)
    weights = tl.exp(scores - tl.where(highest > -float("inf"), highest, 0.0)[:, None])
    total = tl.sum(weights, axis=1)  # 0 if nothing is visible
    return weights / tl.where(total > 0, total, 1.0)[:, None]


@triton.jit(do_not_specialize=["key_column", "value_column"])
def _read(
    out, asked, memory, asked_starts, memory_starts, scale, asked_stride, memory_stride, key_column,
    value_column, heads: tl.constexpr, key_dim: tl.constexpr, value_dim: tl.constexpr,
    key_pad: tl.constexpr, value_pad: tl.constexpr, queries: tl.constexpr, keys: tl.constexpr,
    causal: tl.constexpr,
):  # fmt: skip
    sequence, head = tl.program_id(0), tl.program_id(1)
    first, count, there, known = _spans(asked_starts, memory_starts, sequence)
    if count + known == 0:
        return
    key_column += head * key_dim
    value_column += head * value_dim
    key = _load(memory, memory_stride, there, known, key_column, 0, keys, key_dim, key_pad)
    value = _load(memory, memory_stride, there, known, value_column, 0, keys, value_dim, value_pad)
    for start in range(0, keys, queries):
        query = _load(asked, asked_stride, first, count, head * key_dim, start, queries, key_dim, key_pad)
        weights = _weights(query, key, start, known, scale, causal, queries, keys).to(value.dtype)
        found = tl.dot(weights, value, input_precision="ieee")
        column, width = head * value_dim, heads * value_dim
        _store(found, out, width, first, count, column, start, queries, value_dim, value_pad)


@triton.jit(do_not_specialize=["key_column", "value_column"])
def _way_back(
    grad_asked, grad_memory, grad, asked, memory, asked_starts, memory_starts, scale, asked_stride,
    memory_stride, key_column, value_column, heads: tl.constexpr, key_dim: tl.constexpr,
    value_dim: tl.constexpr, key_pad: tl.constexpr, value_pad: tl.constexpr, queries: tl.constexpr,
    keys: tl.constexpr, causal: tl.constexpr,
):  # fmt: skip
    sequence, head = tl.program_id(0), tl.program_id(1)
    first, count, there, known = _spans(asked_starts, memory_starts, sequence)
    if count + known == 0:
        return
    key_column += head * key_dim
    value_column += head * value_dim
    key = _load(memory, memory_stride, there, known, key_column, 0, keys, key_dim, key_pad)
    value = _load(memory, memory_stride, there, known, value_column, 0, keys, value_dim, value_pad)
    for_key = tl.zeros((keys, key_pad), dtype=tl.float32)
    for_value = tl.zeros((keys, value_pad), dtype=tl.float32)
    for start in range(0, keys, queries):
        query = _load(asked, asked_stride, first, count, head * key_dim, start, queries, key_dim, key_pad)
        column, width = head * value_dim, heads * value_dim
        out = _load(grad, width, first, count, column, start, queries, value_dim, value_pad)
        weights = _weights(query, key, start, known, scale, causal, queries, keys)
        for_value += tl.dot(tl.trans(weights.to(out.dtype)), out, input_precision="ieee")
        for_weights = tl.dot(out, tl.trans(value), input_precision="ieee")
        level = tl.sum(weights * for_weights, axis=1)
        for_scores = (weights * (for_weights - level[:, None]) * scale).to(key.dtype)
        for_key += tl.dot(tl.trans(for_scores), query, input_precision="ieee")
        for_query = tl.dot(for_scores, key, input_precision="ieee")
        column = head * key_dim
        _store(for_query, grad_asked, asked_stride, first, count, column, start, queries, key_dim, key_pad)
    _store(for_key, grad_memory, memory_stride, there, known, key_column, 0, keys, key_dim, key_pad)
    _store(for_value, grad_memory, memory_stride, there, known, value_column, 0, keys, value_dim, value_pad)


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        asked: Tensor,
        memory: Tensor | None,
        asked_starts: Tensor,
        memory_starts: Tensor,
        longest: tuple[int, int],
        heads: tuple[int, int, int],
        scale: float,
        causal: bool,
    ) -> Tensor:
        number, key_dim, value_dim = heads
        asked = asked.contiguous()
        memory = memory if memory is None else memory.contiguous()
        source = asked if memory is None else memory
        key_column = number * key_dim if memory is None else 0
        columns = source.size(-1), key_column, key_column + number * key_dim
        tile = tile_size(max(longest))  # one for both sides: fewer kernels to compile
        ctx.settings = {
            "heads": number,
            "key_dim": key_dim,
            "value_dim": value_dim,
            "key_pad": max(_SMALLEST_TILE, triton.next_power_of_2(key_dim)),
            "value_pad": max(_SMALLEST_TILE, triton.next_power_of_2(value_dim)),
            "queries": tile if tile <= _WHOLE else _ROWS,
            "keys": tile,
            "causal": causal,
        }
        ctx.numbers = scale, asked.size(-1), *columns
        out = asked.new_empty(*asked.shape[:-1], number * value_dim)
        grid = len(asked_starts) - 1, number
        _read[grid](
            out, asked, source, asked_starts, memory_starts, *ctx.numbers, **ctx.settings,
            num_warps=_WARPS[tile],
        )  # fmt: skip
        ctx.save_for_backward(asked, memory, asked_starts, memory_starts)
        return out

    @staticmethod
    @once_differentiable
    def backward(  # type: ignore[override]  # the decorator hides the names of the parameters
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        asked, memory, asked_starts, memory_starts = ctx.saved_tensors
        grad_asked = torch.empty_like(asked)
        grad_memory = None if memory is None else torch.empty_like(memory)
        settings = ctx.settings
        _way_back[(len(asked_starts) - 1, settings["heads"])](
            grad_asked, grad_asked if grad_memory is None else grad_memory, grad_outputs[0].contiguous(),
            asked, asked if memory is None else memory, asked_starts, memory_starts, *ctx.numbers,
            **settings, num_warps=_WARPS[settings["keys"]],
        )  # fmt: skip
        return grad_asked, grad_memory, None, None, None, None, None, None


def attend_inside(
    asked: Float[Tensor, "1 N G"],
    memory: Float[Tensor, "1 M J"] | None,
    starts: tuple[Int[Tensor, "C"], Int[Tensor, "C"]],
    longest: tuple[int, int],
    heads: tuple[int, int, int],
    scale: float,
    causal: bool,
) -> Float[Tensor, "1 N HW"]:
    """Self-attention if `memory` is None: `asked` then holds queries, keys and values side by side. Otherwise
    cross-attention to a memory of keys and values. `starts` are the starts of the sequences and the end of
    the last one; `heads` are their number, d_k and d_v."""
    return _Attend.apply(asked, memory, *starts, longest, heads, scale, causal)  # type: ignore[no-any-return]
