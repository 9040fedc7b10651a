"""The inputs of an attention layer and their parts: embeddings, positions, preceding layers.

    embedding ─ + position ─ [ layers before ] ─▶ x ─▶ q, k, v

Recorded by hooks during one forward pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.data.batch import Device
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.nn.attention import CrossAttention, SelfAttention
from dragoman.probe.hooks import read_pair, standing
from dragoman.shapes import Float, Tensor


@dataclass(frozen=True)
class Inputs:
    """The inputs of the queries of one attention, for one sentence."""

    read: Float[Tensor, "Q D"]
    embedded: Float[Tensor, "Q D"] | None
    """Embeddings; None if the model has no separate module for positions."""
    position: Float[Tensor, "Q D"] | None
    """The added positional encoding; zeros if positions enter the scores instead."""


def inputs_of(
    model: EncoderDecoder, src_ids: Sequence[int], tgt_ids: Sequence[int], module: str, device: Device = None
) -> Inputs:
    modules = dict(model.named_modules())
    attention = modules.get(module)
    if not isinstance(attention, SelfAttention | CrossAttention):
        raise UserError(f"attention: '{module}' is none that has queries, keys and values")
    caught: dict[str, Tensor] = {}

    def read(_module: Any, inputs: tuple[Any, ...]) -> None:
        caught["read"] = inputs[0][0]

    def placed(_module: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        caught["embedded"], caught["placed"] = inputs[0][0], output[0]

    hooks = [attention.register_forward_pre_hook(read)]
    positions = modules.get(f"{module.partition('.')[0]}.positions")
    if positions is not None:
        hooks.append(positions.register_forward_hook(placed))
    with standing(hooks):
        read_pair(model, src_ids, tgt_ids, device)
    embedded = caught.get("embedded")
    return Inputs(caught["read"], embedded, None if embedded is None else caught["placed"] - embedded)
