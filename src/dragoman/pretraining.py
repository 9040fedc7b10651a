"""What is minimised beyond `objectives.py`, in the same form.

    penalties on a causal language model, and a state that goes on from block to block
                                             ULMFiT, Merity et al. 2018
    bidirectional                            ELMo, Peters et al. 2018
    unilm                                    Dong et al. 2019
    labels of vectors                        ViT, Dosovitskiy et al. 2021

What a model says at the places that are asked for (`ANSWERS`) is also what validation looks at.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F

from dragoman.data.batch import PairBatch, TextBatch, VectorBatch
from dragoman.models.base import EncoderDecoder, Memory
from dragoman.models.bert import Bert
from dragoman.models.elmo import Elmo
from dragoman.models.unilm import UnilmDecoder
from dragoman.models.vit import Vit
from dragoman.nn.loss import projected_cross_entropy
from dragoman.nn.recurrent import RecurrentState
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
        return self.penalised(model, whole, left, batch)

    def penalised(
        self,
        model: EncoderDecoder,
        whole: Float[Tensor, "B T D"],
        left: Float[Tensor, "B T D"],
        batch: PairBatch,
    ) -> Loss:
        loss = said(model, left, batch, self.label_smoothing)
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


@dataclass(frozen=True)
class Answers:
    """What a model makes of a batch of text."""

    hidden: Float[Tensor, "A D"]
    """To be projected."""
    targets: Int[Tensor, "A"]
    follows: Float[Tensor, "B 2"] | None = None
    """Scores that the second text follows the first, and that it does not."""


def answer_masked(model: Bert, batch: TextBatch) -> Answers:
    hidden = model.read(batch.ids, batch.mask, batch.segments)
    asked = hidden.flatten(0, 1)[batch.asked]
    return Answers(asked, batch.targets, None if batch.follows is None else model.follows(hidden))


def answer_both_ways(model: Elmo, batch: TextBatch) -> Answers:
    """From the place before what is asked for, and from the one behind it."""
    ahead, back = (layers[-1].flatten(0, 1) for layers in model.both_ways(batch.ids, batch.mask))
    return Answers(torch.cat([ahead[batch.asked - 1], back[batch.asked + 1]]), batch.targets.repeat(2))


def answer_blanks(model: EncoderDecoder, batch: TextBatch) -> Answers:
    """What belongs in the blanks, under the masks that the segments stand for."""
    decoder = model.decoder
    assert isinstance(decoder, UnilmDecoder), "the configuration is checked before training"
    hidden = decoder.read_text(batch.ids, batch.mask, batch.segments)
    return Answers(decoder.to_say(hidden.flatten(0, 1)[batch.asked]), batch.targets)


ANSWERS: dict[str, Callable[[Any, TextBatch], Answers]] = {
    "masked": answer_masked,
    "bidirectional": answer_both_ways,
    "unilm": answer_blanks,
}
"""By the name of the objective; all others are about what a decoder says next."""


class AskedPieces:
    """−log p of the pieces that are asked for.

    bidirectional   −Σ_k log p(t_k | t_1 … t_{k−1}) + log p(t_k | t_{k+1} … t_N)   Peters et al. 2018, 3.1
    unilm           −Σ_k log p(t_k | all that its mask shows of the others)        Dong et al. 2019, 2.3
    """

    def __init__(self, name: str) -> None:
        self.answer = ANSWERS[name]

    def __call__(self, model: Elmo | EncoderDecoder, batch: TextBatch, update: int = 0) -> Loss:  # noqa: ARG002
        answers, projection = self.answer(model, batch), model.projection
        assert projection is not None, "models that are counted learn from pairs"
        total, nll = projected_cross_entropy(
            answers.hidden, projection.weight, projection.bias, answers.targets, model.vocab.pad_id
        )
        return Loss(total, nll, batch.num_tokens)


class VectorLabels:
    """−log p of the label of a sequence of vectors."""

    def __call__(self, model: Vit, batch: VectorBatch, update: int = 0) -> Loss:  # noqa: ARG002
        scores = model(batch.vectors, batch.mask)
        total = F.cross_entropy(scores.float(), batch.labels, reduction="sum")
        return Loss(total, total.detach(), batch.num_tokens)
