"""The parameters of a network in the order of its layers: embeddings, layers, head.

    embeddings      tokens, places, segments, and the norm on them
    layers          of an encoder, then of a decoder: the modules of every list called `layers`
    head            everything after the last layer: final norm, readout, projection, pooler, task head

A matrix shared by embedding and projection is an embedding. Stages without parameters are left out, so the
top is never empty. Freezing, learning rates by layer and gradual unfreezing follow this order.
"""

import re

from torch import nn

EMBEDDINGS, HEAD = "embeddings", "head"
_INPUTS = {"embedding", "positions", "segments", "embedding_norm", "relations", "into"}
_LAYER = re.compile(r"(?:(.*?)\.)?layers\.(\d+)\.")


def stages(model: nn.Module) -> dict[str, list[str]]:
    """Names of parameters by stage, the lowest first."""
    names = [name for name, _ in model.named_parameters()]
    layered: dict[str, list[str]] = {}
    for name in names:
        if found := _LAYER.match(name):
            layered.setdefault(found[0].removesuffix("."), []).append(name)
    encoder = [stage for stage in layered if "encoder" in stage.split(".")]
    order: dict[str, list[str]] = {EMBEDDINGS: [], **layered, HEAD: []}
    for name in names:
        if _LAYER.match(name):
            continue
        parts = name.split(".")
        if _INPUTS & set(parts):
            order[EMBEDDINGS].append(name)
        elif "encoder" in parts and encoder:
            order[encoder[-1]].append(name)  # a norm or a projection at its end
        else:
            order[HEAD].append(name)
    return {stage: found for stage, found in order.items() if found}
