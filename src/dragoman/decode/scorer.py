"""What a search asks: how probable is every piece as the next one? One model answers, or several together.

An ensemble is the mean of the models' probabilities at every position. Its models may be of any family; they
share the vocabulary, since the mean is taken piece by piece.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch

from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.nn.state import State
from dragoman.shapes import Bool, Float, Int, Tensor


def log_probs(model: EncoderDecoder, hidden: Float[Tensor, "N D"]) -> Float[Tensor, "N V"]:
    logits = model.project(hidden)
    return logits.log_softmax(dim=-1, dtype=logits.dtype if logits.dtype == torch.float64 else torch.float32)


@dataclass(frozen=True)
class JointState:
    """The states of several models, moved together."""

    states: tuple[State, ...]

    def expand(self, k: int) -> Self:
        return type(self)(tuple(state.expand(k) for state in self.states))

    def select(self, order: Int[Tensor, "N"]) -> Self:
        return type(self)(tuple(state.select(order) for state in self.states))

    def keep(self, sentences: Int[Tensor, "A"]) -> Self:
        return type(self)(tuple(state.keep(sentences) for state in self.states))


class Scorer:
    """log p(y_t | y_<t, x) over the vocabulary, position by position."""

    def __init__(self, models: Sequence[EncoderDecoder]) -> None:
        if not models:
            raise UserError("an ensemble needs at least one model")
        self.models = tuple(models)
        self.vocab = models[0].vocab
        for model in models[1:]:
            if model.vocab != self.vocab:
                raise UserError("the models of an ensemble have to share their vocabulary; these do not")

    def start(self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> JointState:
        return JointState(tuple(model.start(model.encode(src_ids, src_mask)) for model in self.models))

    def step(self, last_ids: Int[Tensor, "N"], state: JointState) -> tuple[Float[Tensor, "N V"], JointState]:
        """One further position for every row. The scores are the caller's to write into."""
        scores: list[Tensor] = []
        states: list[State] = []
        for model, own in zip(self.models, state.states, strict=True):
            hidden, own = model.step(last_ids, own)
            scores.append(log_probs(model, hidden))
            states.append(own)
        return mean_of(scores), JointState(tuple(states))


def mean_of(scores: Sequence[Float[Tensor, "*B V"]]) -> Float[Tensor, "*B V"]:
    """The log of the mean of the probabilities."""
    if len(scores) == 1:
        return scores[0]
    return torch.stack(tuple(scores)).logsumexp(dim=0) - math.log(len(scores))
