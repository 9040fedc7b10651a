"""Teacher forcing: which of its inputs a decoder is given from the data, and how it goes on from its own."""

import torch

from dragoman.data.batch import PairBatch
from dragoman.models.base import EncoderDecoder
from dragoman.shapes import Bool, Float, Int, Tensor


def decode_own_words(
    model: EncoderDecoder, batch: PairBatch, given: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T D"]:
    """Position by position over the length of the data: where `given`, the decoder is fed the data's word,
    elsewhere the one it found best at the position before. It begins with `<s>` in any case."""
    state = model.start(model.encode(batch.src_ids, batch.src_mask))
    given = given | ~batch.tgt_mask  # padding is not worth a word
    hidden: list[Tensor] = []
    for t in range(batch.tgt_in.size(1)):
        last = batch.tgt_in[:, t]
        if hidden:
            last = torch.where(given[:, t], last, _best_words(model, hidden[-1]))
        out, state = model.step(last, state)
        hidden.append(out)
    return torch.stack(hidden, dim=1)


def _best_words(model: EncoderDecoder, hidden: Float[Tensor, "N D"]) -> Int[Tensor, "N"]:
    """As a greedy search would choose: neither padding nor a second beginning."""
    logits = model.project(hidden.detach()).detach()
    logits[:, model.vocab.pad_id] = -torch.inf
    logits[:, model.vocab.bos_id] = -torch.inf
    return logits.argmax(dim=-1)
