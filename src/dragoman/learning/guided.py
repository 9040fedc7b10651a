"""Guided alignment: one attention head is trained to follow a word alignment."""

import torch

from dragoman.data.batch import PairBatch, PieceLinks
from dragoman.learning.loss import Loss, Objective
from dragoman.models.base import AlignmentGuide, EncoderDecoder
from dragoman.nn.tap import open_tap
from dragoman.shapes import Float, Tensor


class GuidedAlignment(Objective):
    """Another objective, plus the alignment loss of one head (Garg et al. 2019, equation 3):

        J + weight · Σ_t Σ_s −G_ts log A_ts

    A are the attention weights of the head. G has the source tokens of each target token, each row spread
    evenly over them; tokens without links are ignored. The row of A for a token is that of the step that
    reads it, where the word is known (Chen et al. 2020), or of the step before, which predicts it. All other
    attentions keep their fused kernels.
    """

    def __init__(self, objective: Objective, guide: AlignmentGuide, model: EncoderDecoder) -> None:
        self.objective, self.guide = objective, guide
        self.attention = guide.find(model)[1]

    def __call__(self, model: EncoderDecoder, batch: PairBatch, update: int = 0) -> Loss:
        assert batch.links is not None, "the batches of a guided objective have links"
        seen: list[Tensor] = []
        with open_tap(lambda _, weights: seen.append(weights[:, self.guide.head]), only=self.attention):
            loss = self.objective(model, batch, update)
        weights = torch.cat(seen, dim=1)  # B T S; a decoder that runs step by step has T records
        extra = alignment_loss(weights, batch.links, self.guide.step == "read")
        return Loss(loss.total + self.guide.weight * extra, loss.nll, loss.count)


def alignment_loss(weights: Float[Tensor, "B T S"], links: PieceLinks, when_read: bool) -> Float[Tensor, ""]:
    """Σ −G log A over all links; 0 for a batch without links."""
    chosen = weights[links.rows, links.tgt + when_read, links.src]
    chosen = chosen.to(torch.promote_types(chosen.dtype, torch.float32))
    return -(links.weights * chosen.clamp_min(torch.finfo(chosen.dtype).tiny).log()).sum()
