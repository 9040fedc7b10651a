"""A language model with penalties on what its last layer gives, and with a state that goes on from block to
block: ULMFiT (Howard & Ruder 2018) as Merity et al. 2018 train their AWD-LSTM."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from dragoman.data.batch import PairBatch
from dragoman.models.base import EncoderDecoder, Memory
from dragoman.nn.recurrent import RecurrentState
from dragoman.objectives.loss import Loss
from dragoman.objectives.pairs import loss_of_hidden
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
        return self.penalised(model, whole, left, batch)

    def penalised(
        self,
        model: EncoderDecoder,
        whole: Float[Tensor, "B T D"],
        left: Float[Tensor, "B T D"],
        batch: PairBatch,
    ) -> Loss:
        loss = loss_of_hidden(model, left, batch, self.label_smoothing)
        asked = batch.tgt_mask
        size = (left.float().pow(2).mean(dim=-1) * asked).sum()
        change = ((whole[:, 1:] - whole[:, :-1]).float().pow(2).mean(dim=-1) * asked[:, 1:]).sum()
        return Loss(loss.total + self.activation * size + self.temporal * change, loss.nll, loss.count)


@runtime_checkable
class Carries(Protocol):
    """A decoder that can go on from where it ended in the block before."""

    def carry(
        self, tgt_in: Int[Tensor, "B T"], memory: Memory, pasts: tuple[RecurrentState, ...] | None
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"], tuple[RecurrentState, ...]]: ...


class CarriedState:
    """Where the rows of the last batch have ended. Text goes through it batch by batch, in order; gradients
    do not go back into the batch before (truncated back-propagation through time)."""

    def __init__(self) -> None:
        self.pasts: tuple[RecurrentState, ...] | None = None

    def read(
        self, model: EncoderDecoder, batch: PairBatch
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"]]:
        """What the last layer gives, and what dropout leaves of it. The source of a block that goes on is the
        last piece that was read, so it is passed over."""
        decoder = model.decoder
        assert isinstance(decoder, Carries), "the configuration is checked before training"
        memory = model.encode(batch.src_ids, batch.src_mask)
        whole, left, pasts = decoder.carry(batch.tgt_in, memory, self.pasts if batch.goes_on else None)
        self.pasts = tuple(past.cut() for past in pasts)
        return whole, left

    def tensors(self) -> dict[str, Tensor]:
        """By name, for a checkpoint; none before the first batch."""
        return {
            f"{number}.{name}": tensor
            for number, past in enumerate(self.pasts or ())
            for name, tensor in (("hidden", past.hidden), ("cell", past.cell))
            if tensor is not None
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        hidden = [name.partition(".")[0] for name in tensors if name.endswith(".hidden")]
        self.pasts = tuple(
            RecurrentState(tensors[f"{number}.hidden"], tensors.get(f"{number}.cell"))
            for number in sorted(hidden, key=int)
        )


class CarriedCausal:
    """The same objective with a state that goes on from block to block (Merity et al. 2018, section 4.1)."""

    def __init__(self, activation: float, temporal: float, label_smoothing: float = 0.0) -> None:
        self.state, self.causal = CarriedState(), PenalisedCausal(activation, temporal, label_smoothing)

    def __call__(self, model: EncoderDecoder, batch: PairBatch, update: int = 0) -> Loss:  # noqa: ARG002
        return self.causal.penalised(model, *self.state.read(model, batch), batch)
