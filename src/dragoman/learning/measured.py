"""The loss of batches under teacher forcing, and with what the model itself said."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import cast

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batch import PairBatch
from dragoman.learning.cross_entropy import decode_own_words
from dragoman.models import Network
from dragoman.models.base import EncoderDecoder
from dragoman.nn.loss import widest

FREE_POSITIONS = 128
"""A loss with the model's own output reads no further: outputs such as trees would take most of the time."""
_LOGITS_AT_ONCE = 1 << 24


def both_ways(model: EncoderDecoder, batches: Iterable[PairBatch], device: torch.device) -> dict[str, float]:
    """The loss with teacher forcing and with the model's own output, over the same positions."""
    forced, free = torch.zeros(2, 2, dtype=widest(device), device=device)
    tokens = 0
    for whole in batches:
        batch = _beginning(whole)
        forced += measured(model, *said(model(batch.src_ids, batch.src_mask, batch.tgt_in), batch))
        own = decode_own_words(model, batch, given=torch.zeros_like(batch.tgt_mask))
        free += measured(model, *said(own, batch))
        tokens += batch.num_tokens
    return {"forced_loss": forced[0].item() / tokens, "free_loss": free[0].item() / tokens}


def _beginning(batch: PairBatch) -> PairBatch:
    """The first positions of the targets: each costs a step of the decoder."""
    tgt_in, tgt_out, tgt_mask = (
        part[:, :FREE_POSITIONS] for part in (batch.tgt_in, batch.tgt_out, batch.tgt_mask)
    )
    tokens = int(tgt_mask.sum())
    return replace(batch, tgt_in=tgt_in, tgt_out=tgt_out, tgt_mask=tgt_mask, num_tokens=tokens)


def said(hidden: Tensor, batch: PairBatch) -> tuple[Tensor, Tensor]:
    """The decoder's outputs at the target tokens, and the targets."""
    return hidden[batch.tgt_mask], batch.tgt_out[batch.tgt_mask]


def per_token(sums: Tensor, tokens: int) -> dict[str, float]:
    loss, accuracy = (sums / tokens).tolist()
    return {"loss": loss, "perplexity": float(np.exp(min(loss, 700.0))), "accuracy": accuracy}


def measured(model: Network, hidden: Tensor, targets: Tensor) -> Tensor:
    """Two sums over tokens: the negative log-likelihood, and the number of correct predictions."""
    sums = torch.zeros(2, dtype=widest(hidden.device), device=hidden.device)
    for rows, target in _chunks(hidden, targets, model):
        logits = cast(Callable[[Tensor], Tensor], model.project)(rows).float()
        sums[0] += torch.nn.functional.cross_entropy(logits, target, reduction="sum")
        sums[1] += (logits.argmax(dim=-1) == target).sum()
    return sums


def _chunks(hidden: Tensor, target: Tensor, model: Network) -> Iterator[tuple[Tensor, Tensor]]:
    """Split into chunks, because the logits of all positions would be the largest tensor."""
    rows = max(1, _LOGITS_AT_ONCE // model.vocab.tgt_size)
    yield from zip(hidden.split(rows), target.split(rows), strict=True)
