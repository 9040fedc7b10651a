"""Pieces of a text that are asked for, and what a model that reads the rest says in their place.

    masked           BERT, Devlin et al. 2019
    bidirectional    ELMo, Peters et al. 2018
    unilm            UniLM, Dong et al. 2019

`ANSWERS` is also what validation looks at.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from dragoman.data.batch import TextBatch
from dragoman.data.packed import NO_TEXT, PackedText
from dragoman.models.base import EncoderDecoder
from dragoman.models.bert import Bert
from dragoman.models.elmo import Elmo
from dragoman.models.unilm import UnilmDecoder
from dragoman.nn.loss import projected_cross_entropy
from dragoman.objectives.loss import Loss
from dragoman.shapes import Float, Int, Tensor


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


class MaskedLanguageModel:
    """−log p of the pieces that are hidden, and where there are two texts, of whether the second follows.

    J = mean over pieces + mean over rows (Devlin et al. 2019, appendix A.2), as a sum over the pieces.
    """

    def __call__(self, model: Bert, batch: TextBatch | PackedText, update: int = 0) -> Loss:  # noqa: ARG002
        if isinstance(batch, PackedText):
            hidden = model.packed(batch.ids, batch.packing, batch.segments)
            firsts, other = hidden[0, batch.firsts][:, None], batch.other
        else:
            hidden = firsts = model.read(batch.ids, batch.mask, batch.segments)
            other = None if batch.follows is None else (~batch.follows).long()
        asked = model.before_projection(hidden.flatten(0, 1).index_select(0, batch.asked))  # A D
        weight, bias, pad_id = model.projection.weight, model.projection.bias, model.vocab.pad_id
        total, nll = projected_cross_entropy(asked, weight, bias, batch.targets, pad_id, 0.0)
        scores = model.follows(firsts)
        if other is None:
            total = total + 0 * scores.sum()  # processes that add gradients up need one for every weight
        else:
            count = (batch.targets != pad_id).sum()  # where it is: what is recorded has no other numbers
            total = total + count * F.cross_entropy(scores, other, ignore_index=NO_TEXT)
        return Loss(total, nll, batch.num_tokens)


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
