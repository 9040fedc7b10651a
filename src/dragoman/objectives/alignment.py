"""Guided alignment: one head of an attention learns to look where a word alignment says."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from dragoman.data.batch import PairBatch, PieceLinks
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder, source_attentions
from dragoman.nn.tap import open_tap
from dragoman.objectives.loss import Loss, Objective
from dragoman.shapes import Float, Tensor


@dataclass(frozen=True)
class AlignmentGuide:
    """Which head learns to align, and how much that counts (Garg et al. 2019)."""

    weight: float = 0.0
    """0 is off."""
    layer: int | None = None
    """Of the attentions to the source: 0 the first, −1 the last; None the last but one, or the only one."""
    head: int = 0
    step: Literal["read", "predict"] = "read"
    """Where the head looks for a word: at the step that reads it, or at the one that predicts it."""

    def __post_init__(self) -> None:
        if not 0 <= self.weight < math.inf:
            raise UserError(f"weight: expected a number of 0 or more, found {self.weight}")
        if self.head < 0:
            raise UserError(f"head: expected a whole number of at least 0, found {self.head}")

    def find(self, model: nn.Module) -> tuple[str, nn.Module]:
        """The name of the attention in a model, and the attention."""
        found = list(source_attentions(model).items())
        where = "objective.guided_alignment"
        if not found:
            raise UserError(f"{where}.weight: this model has no attention to its source; set it to 0")
        layer = max(-2, -len(found)) if self.layer is None else self.layer
        if not -len(found) <= layer < len(found):
            raise UserError(
                f"{where}.layer: the model has {len(found)} attentions to its source, found {layer}"
            )
        name, module = found[layer]
        heads = getattr(module, "num_heads", 1)
        if self.head >= heads:
            raise UserError(f"{where}.head: {name} has {heads} heads, counted from 0, found {self.head}")
        return name, module


class GuidedAlignment:
    """Another objective, and beside it one head that is told where to look (Garg et al. 2019, equation 3):

        J + weight · Σ_t Σ_s −G_ts log A_ts

    A are the weights of the head. G says which source pieces a target piece belongs to, each row being spread
    evenly over them; pieces that belong to none say nothing. The row of A for a piece is that of the step
    that reads it, where the head knows which word it is to align (Chen et al. 2020), or of the one before,
    which predicts it. All other attentions keep their fused kernels.
    """

    def __init__(self, objective: Objective, guide: AlignmentGuide, model: EncoderDecoder) -> None:
        self.objective, self.guide = objective, guide
        self.attention = guide.find(model)[1]

    def __call__(self, model: EncoderDecoder, batch: PairBatch, update: int = 0) -> Loss:
        assert batch.links is not None, "the batches of a guided objective have links"
        seen: list[Tensor] = []
        with open_tap(lambda _, weights: seen.append(weights[:, self.guide.head]), only=self.attention):
            loss = self.objective(model, batch, update)
        weights = torch.cat(seen, dim=1)  # B T S; a decoder that goes step by step has looked T times
        extra = alignment_loss(weights, batch.links, self.guide.step == "read")
        return Loss(loss.total + self.guide.weight * extra, loss.nll, loss.count)


def alignment_loss(weights: Float[Tensor, "B T S"], links: PieceLinks, when_read: bool) -> Float[Tensor, ""]:
    """Σ −G log A over all links; in a batch without any, 0."""
    chosen = weights[links.rows, links.tgt + when_read, links.src]
    chosen = chosen.to(torch.promote_types(chosen.dtype, torch.float32))
    return -(links.weights * chosen.clamp_min(torch.finfo(chosen.dtype).tiny).log()).sum()
