"""What a search asks: how probable is every piece as the next one? One model answers, or several together.

An ensemble is the mean of the models' probabilities at every position. Its models may be of any family; they
share the vocabulary, since the mean is taken piece by piece.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch

from dragoman.data.batch import PairBatch
from dragoman.decode.gpu.continuous import Rooms
from dragoman.decode.search.coverage import covered, watch
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.nn.state import State, rows_of
from dragoman.shapes import Bool, Float, Int, Tensor


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
    """For each sentence the pieces that its shortlist leaves out, where there is one."""

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
        self.rooms = Rooms()
        for model in models[1:]:
            if model.vocab != self.vocab:
                raise UserError("the models of an ensemble have to share their vocabulary; these do not")

    def start(
        self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"], watched: bool = False
    ) -> JointState:
        """Before the first position. `watched`: the state gathers the attention to the source."""
        states = tuple(model.start(model.encode(src_ids, src_mask)) for model in self.models)
        seen = torch.zeros(src_ids.shape, device=src_ids.device) if watched else None
        return JointState(states, seen)

    def step(self, last_ids: Int[Tensor, "N"], state: JointState) -> tuple[Float[Tensor, "N V"], JointState]:
        """One further position for every row. The scores are the caller's to write into."""
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
        """What one of the models says; the numbers are its caller's."""
        return self.models[number].project(hidden)

    def forced(
        self, batch: PairBatch, watched: bool = False
    ) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B"] | None]:
        """The log-probability of every given piece, all positions at once: what `step` after `step` says. And
        if `watched`, how well the source is covered."""
        hidden: list[Tensor] = []
        seen = torch.zeros(batch.src_ids.shape, device=batch.src_ids.device) if watched else None
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


def mean_of(scores: Sequence[Float[Tensor, "*B V"]]) -> Float[Tensor, "*B V"]:
    """The log of the mean of the probabilities."""
    if len(scores) == 1:
        return scores[0]
    return torch.stack(tuple(scores)).logsumexp(dim=0) - math.log(len(scores))
