"""Ways to compute an attention, all with one signature: an `AttentionCall` in, the heads out.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V          Vaswani et al. 2017, equation 1

`kernel_choice.ATTENTION` says which of them runs; tests compare them.

Taps are callbacks that see attention weights while they are computed. While no tap is open, fused kernels run
and no weights exist. While one is open, `attention_weights`, the only place where weights exist, shows them
to it. Results do not change.
"""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.kernels import usable
from dragoman.nn.mask import EVERYTHING, Mask
from dragoman.nn.positions import Rotation
from dragoman.shapes import Float, Tensor

Tap = Callable[[nn.Module, Float[Tensor, "B H Q M"]], None]


class _Taps(threading.local):
    """One list for each thread."""

    def __init__(self) -> None:
        self.open: list[tuple[Tap, nn.Module | None]] = []


_taps = _Taps()


@contextmanager
def open_tap(tap: Tap, only: nn.Module | None = None) -> Iterator[None]:
    """Call `tap(module, weights)` for every attention that this thread computes inside the `with` block, or
    only for that of one module; the others then keep the fused kernel."""
    _taps.open.append((tap, only))
    try:
        yield
    finally:
        _taps.open.remove((tap, only))


def tap_is_open() -> bool:
    """Whether any tap is open in this thread."""
    return bool(_taps.open)


def taps_on(owner: nn.Module) -> list[Tap]:
    """The taps that see the weights of this module."""
    return [tap for tap, only in _taps.open if only is None or only is owner]


@dataclass(slots=True)
class Heads:
    query: Float[Tensor, "B H Q E"]
    key: Float[Tensor, "B H M E"]
    value: Float[Tensor, "B H M W"]

    @property
    def head_widths(self) -> tuple[int, int]:
        """Width of a key and of a value."""
        return self.key.size(-1), self.value.size(-1)

    def split(self) -> "Heads":
        return self

    def in_rows(self, mask: Mask) -> tuple["Heads", Mask]:
        """Every sequence of a packed batch in a padded row of its own."""
        assert mask.packing is not None, "only packed batches are padded"
        queries, memory = mask.packing
        heads = Heads(queries.padded(self.query), memory.padded(self.key), memory.padded(self.value))
        return heads, Mask(memory.visible(), mask.causal)


@dataclass(slots=True)
class Projected:
    """The outputs of the projections, before they are split into heads. The kernel for packed batches reads
    them in this form."""

    query: Float[Tensor, "B Q J"]
    """The queries; of a self-attention also the keys and values, side by side."""
    memory: Float[Tensor, "B M G"] | None
    """Keys and values of a cross-attention, side by side."""
    sizes: tuple[int, int, int]
    """Number of heads, width of a key, width of a value."""
    rotation: Rotation | None = None
    """Rotation of the queries and keys of a self-attention, not applied yet."""

    @property
    def head_widths(self) -> tuple[int, int]:
        return self.sizes[1:]

    def split(self) -> Heads:
        """The heads, with the rotation applied to queries and keys if there is one."""
        heads, key_dim, value_dim = self.sizes
        widths = [heads * key_dim, heads * value_dim]
        if self.memory is None:
            parts = self.query.split([widths[0], *widths], dim=-1)
        else:
            parts = (self.query, *self.memory.split(widths, dim=-1))
        query, key, value = (split_heads(part, heads) for part in parts)
        if self.rotation is not None:
            query, key = self.rotation(query), self.rotation(key)
        return Heads(query, key, value)

    def rotated(self) -> Float[Tensor, "B Q J"]:
        """The queries with the values next to them, rotated if there is a rotation."""
        if self.rotation is None:
            return self.query
        if not usable(self.query):
            heads = self.split()
            return torch.cat([join_heads(part) for part in (heads.query, heads.key, heads.value)], dim=-1)
        from dragoman.kernels.rotary import rotate

        turn = self.rotation
        return rotate(self.query, turn.cos, turn.sin, self.sizes[0], turn.interleaved)


@dataclass(slots=True)
class AttentionCall:
    """One attention to compute."""

    owner: nn.Module
    """Tells a tap whose weights it is shown."""
    inputs: Heads | Projected
    mask: Mask = EVERYTHING
    dropout: float = 0.0
    bias: Float[Tensor, "#B #H #Q M"] | None = None
    """Added to the scores."""
    scaled: bool = True
    """Scores are divided by √d_k."""


def split_heads(x: Float[Tensor, "B T HE"], num_heads: int) -> Float[Tensor, "B H T E"]:
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def join_heads(x: Float[Tensor, "B H T E"]) -> Float[Tensor, "B T HE"]:
    return x.transpose(1, 2).flatten(2)


def dot_scores(
    query: Float[Tensor, "B H Q E"], key: Float[Tensor, "B H M E"], scaled: bool
) -> Float[Tensor, "B H Q M"]:
    scores = query @ key.transpose(-2, -1)
    return scores / math.sqrt(query.size(-1)) if scaled else scores


def attention_weights(
    owner: nn.Module, scores: Float[Tensor, "B H Q M"], mask: Mask, dropout: float
) -> Float[Tensor, "B H Q M"]:
    """A softmax over the visible positions. Taps see it before its dropout."""
    dense = mask.dense(scores.size(2), scores.size(3), scores.device)
    if dense is not None:
        scores = scores.masked_fill(~dense, -math.inf)
    weights = scores.softmax(dim=-1)
    for tap in taps_on(owner):
        tap(owner, weights)
    return F.dropout(weights, dropout)


def weigh(
    owner: nn.Module,
    scores: Float[Tensor, "B H Q M"],
    value: Float[Tensor, "B H M W"],
    mask: Mask = EVERYTHING,
    dropout: float = 0.0,
) -> Float[Tensor, "B H Q W"]:
    """Values weighted by a softmax of any scores over the visible positions."""
    return attention_weights(owner, scores, mask, dropout) @ value


def attend_explicitly(call: AttentionCall) -> Float[Tensor, "B H Q W"]:
    """With weights that exist, for taps."""
    heads = call.inputs.split()
    scores = dot_scores(heads.query, heads.key, call.scaled)
    if call.bias is not None:
        scores = scores + call.bias.to(scores.dtype)
    return weigh(call.owner, scores, heads.value, call.mask, call.dropout)


def attend_fused(call: AttentionCall) -> Float[Tensor, "B H Q W"]:
    """torch's `scaled_dot_product_attention`, which chooses between its own kernels."""
    heads, mask = call.inputs.split(), call.mask
    query, key, value = heads.query, heads.key, heads.value
    queries, memory, scale = query.size(2), key.size(2), None if call.scaled else 1.0
    if call.bias is None and mask.causal and mask.visible is None and queries == memory:
        return F.scaled_dot_product_attention(
            query, key, value, dropout_p=call.dropout, is_causal=True, scale=scale
        )
    dense = mask.dense(queries, memory, query.device)
    if call.bias is not None:
        bias = call.bias.to(query.dtype)
        dense = bias if dense is None else bias.masked_fill(~dense, -math.inf)
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=dense, dropout_p=call.dropout, scale=scale
    )


def attend_one_query(call: AttentionCall) -> Float[Tensor, "B H 1 W"]:
    """One query a row that sees everything, as in a search step: element by element, which on a CPU is up to
    twice as fast as a kernel made for many queries."""
    heads = call.inputs.split()
    scores = (heads.query * heads.key).sum(dim=-1)  # B H M
    weights = (scores / math.sqrt(heads.query.size(-1)) if call.scaled else scores).softmax(dim=-1)
    return (weights[..., None] * heads.value).sum(dim=2, keepdim=True)


def attend_flash(call: AttentionCall) -> Float[Tensor, "1 H N W"]:
    """torch's FlashAttention for sequences of several lengths in one row."""
    assert call.mask.packing is not None, "flash attention is for packed batches"
    queries, memory = call.mask.packing
    heads = call.inputs.split()
    found = torch.ops.aten._flash_attention_forward(
        # Without contiguous() both passes would copy.
        *(x[0].transpose(0, 1).contiguous() for x in (heads.query, heads.key, heads.value)),
        *(queries.starts, memory.starts, queries.longest, memory.longest),
        *(call.dropout, call.mask.causal, False),
        scale=None if call.scaled else 1.0,
    )
    return found[0].transpose(0, 1)[None]


def attend_packed(call: AttentionCall) -> Float[Tensor, "1 H N W"]:
    """Our Triton kernel for packed batches of short sequences (`kernels/packed_attention.py`)."""
    from dragoman.kernels.packed_attention import attend_inside

    assert call.mask.packing is not None and isinstance(call.inputs, Projected)
    (queries, memory), (heads, key_dim, value_dim) = call.mask.packing, call.inputs.sizes
    found = attend_inside(
        call.inputs.rotated(),
        call.inputs.memory,
        (queries.starts, memory.starts),
        (queries.longest, memory.longest),
        (heads, key_dim, value_dim),
        1 / math.sqrt(key_dim) if call.scaled else 1.0,
        call.mask.causal,
    )
    return split_heads(found, heads)
