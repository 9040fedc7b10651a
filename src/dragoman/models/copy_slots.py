"""What a model that copies needs for a search of fixed shape: the sources of all slots, and for every beam
how many pieces before each source position were written last."""

from dataclasses import fields

import torch
import torch.nn.functional as F

from dragoman.models.base import Memory
from dragoman.models.copying import CopyingEncoderDecoder
from dragoman.nn.copying import CopySource
from dragoman.shapes import Float, Int, Tensor


def source_bytes(memory: int) -> int:
    """Bytes of one source of `memory` positions, nearly all for which of its columns are equal."""
    return 4 * (2 * memory) ** 2


class CopySlots:
    """Copy sources of up to `memory` positions for `sentences`, and runs for their `beams`."""

    def __init__(self, model: CopyingEncoderDecoder, sentences: int, beams: int, memory: int) -> None:
        self.head = model.copy
        like = self.head.key.weight.detach()
        ids = torch.full((sentences, memory), model.vocab.pad_id, device=like.device)
        nothing = like.new_zeros(sentences, memory, self.head.key.in_features)
        with torch.no_grad():
            source = self.head.read(nothing, ids, torch.zeros_like(ids, dtype=torch.bool))
        exact = torch.promote_types(like.dtype, torch.float32)
        # As numbers: a step multiplies by them.
        self.source = CopySource(
            source.keys, source.votes, source.pieces, source.copyable, source.same.to(exact), source.first
        )
        self.runs = torch.zeros(sentences, beams, memory, dtype=torch.long, device=like.device)

    def admit(self, rows: Int[Tensor, "R"], memory: Memory) -> None:
        """Sentences replace others."""
        assert memory.ids is not None, "`encode` has added them"
        room = self.runs.size(2) - memory.ids.size(1)
        hidden, ids, mask = (
            F.pad(memory.hidden, (0, 0, 0, room)),
            *(F.pad(x, (0, room)) for x in (memory.ids, memory.mask)),
        )
        new = self.head.read(hidden, ids, mask)
        for field in fields(CopySource):
            kept = getattr(self.source, field.name)
            kept.index_copy_(0, rows, getattr(new, field.name).to(kept.dtype))
        self.runs.index_fill_(0, rows, 0)

    def log_p(self, hidden: Float[Tensor, "B K D"], last: Int[Tensor, "B K"]) -> Float[Tensor, "N V"]:
        """The log-probabilities after the tokens `last` have been read."""
        self.runs.copy_(self.source.next_runs(last, self.runs))
        return self.head(hidden, self.source, self.runs).flatten(0, 1)

    def follow(self, parents: Int[Tensor, "B K"], token: Int[Tensor, "B K"]) -> None:  # noqa: ARG002
        """Every beam takes over the runs of its parent."""
        self.runs.copy_(self.runs.gather(1, parents[:, :, None].expand_as(self.runs)))
