"""What pre-training minimises beyond `objectives.py`, in the same form.

causal with penalties     ULMFiT, Merity et al. 2018
"""

from typing import Protocol, runtime_checkable

from dragoman.data.batch import PairBatch
from dragoman.models.base import EncoderDecoder, Memory
from dragoman.objectives import Loss, said
from dragoman.shapes import Float, Int, Tensor


@runtime_checkable
class TellsDropout(Protocol):
    """A decoder that gives its output before its last dropout, and after it."""

    def twice(
        self, tgt_in: Int[Tensor, "B T"], memory: Memory
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"]]: ...


class PenalisedCausal:
    """Cross-entropy, and penalties on what the last layer gives (Merity et al. 2018, section 4.3):

        J + Σ_t α · mean (m ⊙ h_t)² + β · mean (h_t − h_{t−1})²

    α keeps activations small (AR), β lets them change slowly (TAR); m is the mask of the last dropout. Both
    sums go over the pieces that are asked for.
    """

    def __init__(self, activation: float, temporal: float, label_smoothing: float = 0.0) -> None:
        self.activation, self.temporal, self.label_smoothing = activation, temporal, label_smoothing

    def __call__(self, model: EncoderDecoder, batch: PairBatch, update: int = 0) -> Loss:  # noqa: ARG002
        decoder = model.decoder
        assert isinstance(decoder, TellsDropout), "the configuration is checked before training"
        whole, left = decoder.twice(batch.tgt_in, model.encode(batch.src_ids, batch.src_mask))
        loss = said(model, left, batch, self.label_smoothing)
        asked = batch.tgt_mask
        size = (left.float().pow(2).mean(dim=-1) * asked).sum()
        change = ((whole[:, 1:] - whole[:, :-1]).float().pow(2).mean(dim=-1) * asked[:, 1:]).sum()
        return Loss(loss.total + self.activation * size + self.temporal * change, loss.nll, loss.count)
