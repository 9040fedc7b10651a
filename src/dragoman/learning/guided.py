"""Guided alignment: one head of an attention learns to look where a word alignment says."""

import torch

from dragoman.data.batch import PairBatch, PieceLinks
from dragoman.learning.loss import Loss, Objective
from dragoman.models.alignment_guide import AlignmentGuide
from dragoman.models.base import EncoderDecoder
from dragoman.nn.tap import open_tap
from dragoman.shapes import Float, Tensor


class GuidedAlignment(Objective):
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
