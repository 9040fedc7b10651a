"""Single heads: switched off, weighed by what they are worth, by how they spread, by what they write.

    importance   log p(y|x) − log p(y|x, head off)             Michel et al. 2019, by masking, pair by pair
    entropy      −Σ_j α_ij ln α_ij, mean over i                nats; 0 looks at one place
    norms        ‖α_ij f(x_j)‖, f(x) = x W_V W_O               Kobayashi et al. 2020, section 3.1

A head is switched off by a hook on the projection that joins the heads: its part of the input is 0. The
attention itself, fused kernels included, runs as always.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from dragoman.data.batch import Device, collate
from dragoman.decode.search.scorer import Scorer
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.nn.attention import CrossAttention, SelfAttention
from dragoman.nn.attention_kernels import open_tap
from dragoman.nn.scores import ScoredAttention
from dragoman.probe.inside import Inside, Seen, look_inside
from dragoman.probe.vectors import contexts_of, vectors_of
from dragoman.shapes import Float, Tensor

HeadSelection = Mapping[str, Collection[int]]
"""Numbers of heads, from 0, by the name of their attention."""


def head_counts(model: nn.Module) -> dict[str, int]:
    """The attentions whose heads can be switched off, and how many each has."""
    return {
        name: 1 if isinstance(module, ScoredAttention) else module.num_heads
        for name, module in model.named_modules()
        if isinstance(module, SelfAttention | CrossAttention | ScoredAttention)
    }


@contextmanager
def mask_heads(model: nn.Module, heads: HeadSelection) -> Iterator[None]:
    """Inside the `with` block these heads write nothing: in training, search, scoring and recording alike.
    The one head of a scored attention is its whole context."""
    known, modules = head_counts(model), dict(model.named_modules())
    for name, numbers in heads.items():
        if name not in known:
            has = ", ".join(known) or "none that has heads"
            raise UserError(f"heads: this model has no attention '{name}'; it has {has}")
        if wrong := [number for number in numbers if not 0 <= number < known[name]]:
            raise UserError(f"heads: {name} has no head {wrong[0]}; they are 0 to {known[name] - 1}")
    with ExitStack() as stack:
        # Searches that have recorded their steps would replay them without hooks; an open tap keeps them out.
        stack.enter_context(open_tap(_ignore, only=nn.Identity()))
        for name, numbers in heads.items():
            module = modules[name]
            if isinstance(module, ScoredAttention):
                hook = module.register_forward_hook(_silence) if numbers else None
            else:
                assert isinstance(module, SelfAttention | CrossAttention)
                kept = torch.ones(known[name])
                kept[list(numbers)] = 0.0
                hook = module.out.register_forward_pre_hook(partial(_switch_off, kept))
            if hook is not None:
                stack.callback(hook.remove)
        yield


def importance(
    model: EncoderDecoder, src_ids: Sequence[int], tgt_ids: Sequence[int], device: Device = None
) -> dict[str, list[float]]:
    """For every head by how much log p(y|x) falls when it alone is off; below 0 where the pair gains."""
    scorer, batch = Scorer([model]), collate([(src_ids, tgt_ids)], device)

    def log_prob() -> float:
        with torch.inference_mode():
            return scorer.forced(batch)[0].double().sum().item()

    whole = log_prob()
    found: dict[str, list[float]] = {}
    for name, count in head_counts(model).items():
        for number in range(count):
            with mask_heads(model, {name: [number]}):
                found.setdefault(name, []).append(whole - log_prob())
    return found


def entropy(seen: Seen) -> Float[Tensor, "H"]:
    """The mean over queries, in nats."""
    weights = seen.weights.double()
    return -torch.special.xlogy(weights, weights).sum(dim=-1).mean(dim=-1)


def weighted_norms(
    model: EncoderDecoder, src_ids: Sequence[int], tgt_ids: Sequence[int], device: Device = None
) -> Inside:
    """A pair with ‖α f(x)‖ in place of every weight α (rows do not sum to 1). Scored attention has no value
    projection: ‖α h‖."""
    seen = look_inside(model, src_ids, tgt_ids, device=device)
    written = {
        name: vectors.written().norm(dim=-1).cpu()  # H #Q M
        for name, vectors in vectors_of(model, src_ids, tgt_ids, device).items()
    }
    for name, values in contexts_of(model, src_ids, tgt_ids, device).items():
        written[name] = values.norm(dim=-1)[None, None].cpu()
    norms = tuple(
        Seen(each.module, each.kind, each.layer, each.weights * written[each.module])
        for each in seen.attentions
        if each.module in written
    )
    return replace(seen, attentions=norms)


def _switch_off(kept: Tensor, _module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    joined = inputs[0].unflatten(-1, (len(kept), -1))
    return ((joined * kept.to(joined)[:, None]).flatten(-2),)


def _silence(_module: nn.Module, _inputs: tuple[Any, ...], output: Tensor) -> Tensor:
    return torch.zeros_like(output)


def _ignore(_module: nn.Module, _weights: Tensor) -> None: ...
