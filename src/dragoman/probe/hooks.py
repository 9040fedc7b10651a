"""Hooks that stand on modules inside a `with` block alone: at all other times nothing is there that could
cost."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch.utils.hooks import RemovableHandle

from dragoman.data.batch import Device, collate
from dragoman.models.base import EncoderDecoder


@contextmanager
def standing(hooks: Iterable[RemovableHandle]) -> Iterator[None]:
    """Hooks that have been registered go when the block is left."""
    hooks = list(hooks)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def read_pair(
    model: EncoderDecoder, src_ids: Sequence[int], tgt_ids: Sequence[int], device: Device = None
) -> None:
    """Let a model read a source and its target, for what hooks or taps see of it."""
    batch = collate([(src_ids, tgt_ids)], device)
    with torch.no_grad():
        model(batch.src_ids, batch.src_mask, batch.tgt_in)
