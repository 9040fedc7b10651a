"""What a search asks: how probable is every piece as the next one? One model answers, or several together.

An ensemble is the mean of the models' probabilities at every position. Its models may be of any family; they
share the vocabulary, since the mean is taken piece by piece.

With a shortlist only the pieces that the sources can become are scored:

    source ─ shortlist ─▶ pieces of each sentence ─ union ─▶ rows of the projection, taken once a batch
                                  │                                │
                                  └──── leaves out the others ─────┴─▶ softmax ─▶ search

What another sentence of the batch brought with it is left out before the softmax, so that the batch changes
nothing: log p of a sentence is over its own list, as in CTranslate2. The search counts in places of the
union; `<pad>`, `<s>` and `</s>` keep their numbers.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Self

import numpy as np
import torch

from dragoman.data.batch import PairBatch, unpadded
from dragoman.decode.search.coverage import covered, watch
from dragoman.decode.search.job import Ended, Job
from dragoman.decode.search.shortlist import Shortlist
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.nn.state import State, rows_of
from dragoman.shapes import Bool, EncoderInput, Float, Int, Tensor
from dragoman.text.piece_bytes import Spelling

if TYPE_CHECKING:
    from dragoman.decode.gpu.continuous import Rooms

_CPU = torch.device("cpu")


def log_probs(logits: Float[Tensor, "N V"]) -> Float[Tensor, "N V"]:
    return logits.log_softmax(dim=-1, dtype=logits.dtype if logits.dtype == torch.float64 else torch.float32)


@dataclass(frozen=True)
class JointState:
    """The states of several models, moved together, and the attention they have paid where it is watched."""

    states: tuple[State, ...]
    seen: Float[Tensor, "N S"] | None = None
    """For each row and source position the sum over the target positions so far."""
    beams: int = 1
    closed: Bool[Tensor, "A C"] | None = None
    """The pieces that the shortlist of each sentence leaves out. None without a shortlist."""

    def expand(self, k: int) -> Self:
        states = tuple(state.expand(k) for state in self.states)
        seen = None if self.seen is None else self.seen.repeat_interleave(k, dim=0)
        return replace(self, states=states, seen=seen, beams=self.beams * k)

    def select(self, order: Int[Tensor, "N"]) -> Self:
        seen = None if self.seen is None else self.seen[order]
        return replace(self, states=tuple(state.select(order) for state in self.states), seen=seen)

    def keep(self, sentences: Int[Tensor, "A"]) -> Self:
        states = tuple(state.keep(sentences) for state in self.states)
        seen = None if self.seen is None else self.seen[rows_of(sentences, self.beams)]
        closed = None if self.closed is None else self.closed[sentences]
        return replace(self, states=states, seen=seen, closed=closed)


class Scorer:
    """log p(y_t | y_<t, x) over the vocabulary, position by position."""

    def __init__(self, models: Sequence[EncoderDecoder]) -> None:
        if not models:
            raise UserError("an ensemble needs at least one model")
        self.models = tuple(models)
        self.vocab = models[0].vocab
        self.shortlist: Callable[[], Shortlist] | None = None
        """Source of the shortlist for `search.shortlist`."""
        self.texts: Callable[[], Spelling] | None = None
        """The text of the target pieces, for `search.brackets`."""
        for model in models[1:]:
            if model.vocab != self.vocab:
                raise UserError("the models of an ensemble have to share their vocabulary; these do not")

    @property
    def device(self) -> torch.device:
        model = self.models[0]
        return next((tensor.device for tensor in chain(model.parameters(), model.buffers())), _CPU)

    @cached_property
    def rooms(self) -> "Rooms":
        """The recently used slots of searches on a GPU."""
        from dragoman.decode.gpu.continuous import Rooms

        return Rooms()

    def among(self, jobs: Sequence[Job]) -> "ListedScorer":
        """The same models, asked only for the pieces that these jobs can become."""
        if any(model.abilities.copies for model in self.models):
            raise UserError(
                "search.shortlist: this model copies pieces of its source, which a shortlist may leave out; "
                "set it to false"
            )
        if self.shortlist is None:
            raise UserError("search.shortlist: this translator has none; open a run, or set it to false")
        return ListedScorer(self, self.shortlist(), jobs)

    def start(
        self, src_ids: EncoderInput, src_mask: Bool[Tensor, "B S"], watched: bool = False
    ) -> JointState:
        """Before the first position. `watched`: the state gathers the attention to the source."""
        states = tuple(model.start(model.encode(src_ids, src_mask)) for model in self.models)
        seen = torch.zeros(src_mask.shape, device=src_mask.device) if watched else None
        return JointState(states, seen)

    def step(self, last_ids: Int[Tensor, "N"], state: JointState) -> tuple[Float[Tensor, "N V"], JointState]:
        """Advance every row by one position. The caller may overwrite the scores."""
        scores: list[Tensor] = []
        states: list[State] = []
        seen = state.seen
        for number, (model, own) in enumerate(zip(self.models, state.states, strict=True)):
            if seen is None:
                hidden, own = model.step(last_ids, own)
            else:
                with watch() as watched:
                    hidden, own = model.step(last_ids, own)
                attention = watched.last_layer(seen.size(1)).flatten(0, 1)  # A K S to N S
                seen = seen + attention / len(self.models)
            scores.append(log_probs(self._logits(number, hidden, state)))
            states.append(own)
        return mean_of(scores), replace(state, states=tuple(states), seen=seen)

    def _logits(
        self,
        number: int,
        hidden: Float[Tensor, "N D"],
        state: JointState,  # noqa: ARG002
    ) -> Float[Tensor, "N V"]:
        """The scores of one model. The caller may overwrite them."""
        return self.models[number].project(hidden)

    def forced(
        self, batch: PairBatch, watched: bool = False
    ) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B"] | None]:
        """The log-probability of every given piece, all positions at once: what `step` after `step` says. And
        if `watched`, how well the source is covered."""
        hidden: list[Tensor] = []
        seen = torch.zeros(batch.src_mask.shape, device=batch.src_mask.device) if watched else None
        for model in self.models:
            if seen is None:
                hidden.append(model(batch.src_ids, batch.src_mask, batch.tgt_in))
            else:
                with watch() as attention:
                    hidden.append(model(batch.src_ids, batch.src_mask, batch.tgt_in))
                weights = attention.last_layer(seen.size(1)) * batch.tgt_mask[:, :, None]  # B T S
                seen = seen + weights.sum(dim=1) / len(self.models)
        rows: list[Tensor] = []
        for row, target in enumerate(batch.tgt_out):  # row by row: B T V logits at once would be large
            scores = mean_of([log_probs(m.project(h[row])) for m, h in zip(self.models, hidden, strict=True)])
            rows.append(scores.gather(1, target[:, None])[:, 0])
        return torch.stack(rows), None if seen is None else covered(seen, batch.src_mask)


class ListedScorer(Scorer):
    """The models of a scorer for the sentences of one batch."""

    def __init__(self, scorer: Scorer, shortlist: Shortlist, jobs: Sequence[Job]) -> None:
        super().__init__(scorer.models)
        self.pieces_of = shortlist
        whole = scorer.vocab
        assert {whole.pad_id, whole.bos_id, whole.eos_id} == {0, 1, 2}, "in order, they come first"
        needed = np.flatnonzero(self._allowed([job.source for job in jobs]).any(axis=0)).tolist()
        self.ids: list[int] = sorted({0, 1, 2}.union(needed))
        self.vocab = Vocab(whole.src_size, len(self.ids), False, whole.pad_id, whole.bos_id, whole.eos_id)
        self.pieces = torch.tensor(self.ids, device=self.device)
        with torch.inference_mode():
            self.projections = [model.project_among(self.pieces) for model in self.models]

    def start(
        self, src_ids: EncoderInput, src_mask: Bool[Tensor, "B S"], watched: bool = False
    ) -> JointState:
        closed = torch.from_numpy(~self._allowed(unpadded(src_ids, src_mask))[:, self.ids])
        return replace(super().start(src_ids, src_mask, watched), closed=closed.to(src_ids.device))

    def step(self, last_ids: Int[Tensor, "N"], state: JointState) -> tuple[Float[Tensor, "N C"], JointState]:
        return super().step(self.pieces[last_ids], state)

    def _logits(self, number: int, hidden: Float[Tensor, "N D"], state: JointState) -> Float[Tensor, "N C"]:
        assert state.closed is not None, "`start` has made it"
        logits = self.projections[number](hidden)
        by_sentence = logits.view(len(state.closed), -1, logits.size(1))  # A K C
        return by_sentence.masked_fill_(state.closed[:, None], -torch.inf).view_as(logits)

    def _allowed(self, sources: Sequence[Sequence[int]]) -> np.ndarray:
        """The target pieces that each sentence may produce. `</s>` of the source counts as a piece, as in
        training."""
        return self.pieces_of.allowed(sources, self.models[0].vocab.tgt_size)

    def named(self, tokens: Iterable[int]) -> tuple[int, ...]:
        """Places of the union as pieces of the vocabulary."""
        return tuple(self.ids[token] for token in tokens)

    def in_vocabulary(self, final: Ended | tuple[int, ...]) -> Ended | tuple[int, ...]:
        """The output of a stream, in pieces of the vocabulary."""
        return self.restore([[final]])[0][0] if isinstance(final, Ended) else self.named(final)

    def restore(self, found: Sequence[Sequence[Ended]]) -> list[list[Ended]]:
        return [[replace(ended, tokens=self.named(ended.tokens)) for ended in own] for own in found]


def mean_of(scores: Sequence[Float[Tensor, "*B V"]]) -> Float[Tensor, "*B V"]:
    """The log of the mean of the probabilities."""
    if len(scores) == 1:
        return scores[0]
    return torch.stack(tuple(scores)).logsumexp(dim=0) - math.log(len(scores))
