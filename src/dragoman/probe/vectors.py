"""Queries, keys and values: what an attention worked with, caught by hooks while a pair is read."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from dragoman.data.batch import Device
from dragoman.models.base import EncoderDecoder
from dragoman.nn.attention import CrossAttention, SelfAttention
from dragoman.nn.attention_kernels import split_heads
from dragoman.nn.mask import Mask
from dragoman.nn.positions import UNRELATED, Relation
from dragoman.nn.scores import ScoredAttention
from dragoman.probe.hooks import read_pair, standing
from dragoman.shapes import Bool, Float, Tensor


@dataclass(frozen=True)
class AttentionVectors:
    """The vectors of one attention for one sentence. weights = softmax(query · key × scale + bias) over what
    is visible; output = Σ weights × value, joined and multiplied by `out`."""

    query: Float[Tensor, "H Q E"]
    key: Float[Tensor, "H M E"]
    value: Float[Tensor, "H #Q M W"]
    """One vector per memory position; with Shaw's positions, one per pair of positions."""
    scale: float
    bias: Float[Tensor, "H Q M"] | None
    """Bias of relative positions (T5, Shaw)."""
    visible: Bool[Tensor, "Q M"]
    out: nn.Linear

    def scores(self) -> Float[Tensor, "H Q M"]:
        """The input of the softmax; −∞ where masked."""
        scores = self.query @ self.key.transpose(-2, -1) * self.scale
        scores = scores if self.bias is None else scores + self.bias
        return scores.masked_fill(~self.visible, -math.inf)

    def written(self) -> Float[Tensor, "H #Q M D"]:
        """The output if one memory position had all the weight: its value times `out`."""
        weight = self.out.weight.detach().unflatten(1, (len(self.value), -1))  # D H W
        return torch.einsum("hqmw,dhw->hqmd", self.value, weight)


Caught = dict[str, AttentionVectors]


@contextmanager
def catch_vectors(model: EncoderDecoder) -> Iterator[Caught]:
    """The vectors of every multi-head attention that runs inside the `with` block, for one sentence."""
    caught: Caught = {}
    hooks = [
        module.register_forward_pre_hook(partial(_catch, caught, name))
        for name, module in model.named_modules()
        if isinstance(module, SelfAttention | CrossAttention)
    ]
    with standing(hooks):
        yield caught


def vectors_of(
    model: EncoderDecoder, src_ids: Sequence[int], tgt_ids: Sequence[int], device: Device = None
) -> Caught:
    """The vectors of all multi-head attentions for a given pair; see `contexts_of` for scored attention."""
    with catch_vectors(model) as caught:
        read_pair(model, src_ids, tgt_ids, device)
    return caught


def contexts_of(
    model: EncoderDecoder, src_ids: Sequence[int], tgt_ids: Sequence[int], device: Device = None
) -> dict[str, Float[Tensor, "M W"]]:
    """The vectors that scored attentions (recurrent and convolutional decoders) sum, one per source
    position."""
    found: dict[str, Tensor] = {}

    def keep(name: str, _module: nn.Module, inputs: tuple[Any, ...]) -> None:
        found[name] = inputs[1].values[0]

    hooks = [
        module.register_forward_pre_hook(partial(keep, name))
        for name, module in model.named_modules()
        if isinstance(module, ScoredAttention)
    ]
    with standing(hooks):
        read_pair(model, src_ids, tgt_ids, device)
    return found


def _catch(caught: Caught, name: str, module: nn.Module, inputs: tuple[Any, ...]) -> None:
    if isinstance(module, SelfAttention):
        x, mask, relation = inputs if len(inputs) == 3 else (*inputs, UNRELATED)
        query, key, value = module.project(x, relation)
    else:
        assert isinstance(module, CrossAttention)
        x, key, value, mask = inputs
        query, relation = split_heads(module.query(x), module.num_heads), UNRELATED
    assert len(query) == 1, "one sentence at a time"
    caught[name] = _vectors(module, query, key, value[0], mask, relation)


def _vectors(
    module: SelfAttention | CrossAttention,
    query: Float[Tensor, "1 H Q E"],
    key: Float[Tensor, "1 H M E"],
    value: Float[Tensor, "H M W"],
    mask: Mask,
    relation: Relation,
) -> AttentionVectors:
    queries, memory = query.size(2), key.size(2)
    scale = 1 / math.sqrt(query.size(-1)) if module.scaled else 1.0
    bias = None if relation.bias is None else relation.bias[0]
    values = value[:, None]  # H 1 M W
    distances = module.distances if isinstance(module, SelfAttention) else None
    if distances is not None:
        assert relation.clipped is not None
        bias = distances.scores(query * scale, relation.clipped)[0]
        values = values + distances.value[relation.clipped]  # H Q M W
    dense = mask.dense(queries, memory, query.device)
    everything = torch.ones(queries, memory, dtype=torch.bool, device=query.device)
    visible = everything if dense is None else dense[0, 0] & everything
    return AttentionVectors(query[0], key[0], values, scale, bias, visible, module.out)
