"""A search among the pieces that a shortlist allows.

    source ─ shortlist ─▶ pieces of each sentence ─ union ─▶ rows of the projection, taken once a batch
                                  │                                │
                                  └──── leaves out the others ─────┴─▶ softmax ─▶ search

Only the pieces that some sentence of the batch may become are scored. What another sentence brought with it
is left out before the softmax, so that the batch changes nothing: log p of a sentence is over its own list,
as in CTranslate2. The search counts in places of the union; `<pad>`, `<s>` and `</s>` keep their numbers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import torch

from dragoman.decode.search.finished import Ended
from dragoman.decode.search.scorer import JointState, Scorer
from dragoman.decode.search.shortlist import Shortlist
from dragoman.models.base import Vocab
from dragoman.shapes import Bool, Float, Int, Tensor


class ListedScorer(Scorer):
    """The models of a scorer for the sentences of one batch."""

    def __init__(
        self,
        scorer: Scorer,
        shortlist: Shortlist,
        src_ids: Int[Tensor, "B S"],
        src_mask: Bool[Tensor, "B S"],
    ) -> None:
        super().__init__(scorer.models)
        self.shortlist = shortlist
        whole = scorer.vocab
        assert {whole.pad_id, whole.bos_id, whole.eos_id} == {0, 1, 2}, "in order, they come first"
        needed = np.flatnonzero(self._allowed(src_ids, src_mask).any(axis=0)).tolist()
        self.ids: list[int] = sorted({0, 1, 2}.union(needed))
        self.vocab = Vocab(whole.src_size, len(self.ids), False, whole.pad_id, whole.bos_id, whole.eos_id)
        self.pieces = torch.tensor(self.ids, device=src_ids.device)
        with torch.inference_mode():
            self.projections = [model.project_among(self.pieces) for model in self.models]

    def start(
        self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"], watched: bool = False
    ) -> JointState:
        closed = torch.from_numpy(~self._allowed(src_ids, src_mask)[:, self.ids])
        return replace(super().start(src_ids, src_mask, watched), closed=closed.to(src_ids.device))

    def step(self, last_ids: Int[Tensor, "N"], state: JointState) -> tuple[Float[Tensor, "N C"], JointState]:
        return super().step(self.pieces[last_ids], state)

    def _logits(self, number: int, hidden: Float[Tensor, "N D"], state: JointState) -> Float[Tensor, "N C"]:
        assert state.closed is not None, "`start` has made it"
        logits = self.projections[number](hidden)
        by_sentence = logits.view(len(state.closed), -1, logits.size(1))  # A K C
        return by_sentence.masked_fill_(state.closed[:, None], -torch.inf).view_as(logits)

    def _allowed(self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> np.ndarray:
        """What each sentence may become; `</s>` of the source is a piece too, as when it was learnt."""
        lengths = src_mask.sum(dim=1).tolist()
        sources = [ids[:length] for ids, length in zip(src_ids.tolist(), lengths, strict=True)]
        return self.shortlist.allowed(sources, self.models[0].vocab.tgt_size)

    def named(self, tokens: Iterable[int]) -> tuple[int, ...]:
        """Places of the union as pieces of the vocabulary."""
        return tuple(self.ids[token] for token in tokens)

    def in_vocabulary(self, final: Ended | tuple[int, ...]) -> Ended | tuple[int, ...]:
        """What a stream gives, in pieces of the vocabulary."""
        return self.restore([[final]])[0][0] if isinstance(final, Ended) else self.named(final)

    def restore(self, found: Sequence[Sequence[Ended]]) -> list[list[Ended]]:
        return [[replace(ended, tokens=self.named(ended.tokens)) for ended in own] for own in found]
