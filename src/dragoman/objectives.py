"""What training minimises: Objective(model, batch, update) -> a summed loss and its count.

Losses are sums over target tokens; the training loop divides once per update by the tokens of the whole
update, so that accumulation and several processes give what one large batch gives.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.data.batch import NO_TEXT, PackedPairs, PackedText, PairBatch, PieceLinks, TextBatch
from dragoman.errors import UserError
from dragoman.kernels import usable
from dragoman.models.base import EncoderDecoder, source_attentions
from dragoman.models.bert import Bert
from dragoman.nn.attention import open_tap
from dragoman.nn.loss import cross_entropy, projected_cross_entropy
from dragoman.nn.r_drop import projected_r_drop, r_drop
from dragoman.shapes import Bool, Float, Int, Tensor

ForcingSchedule = Literal["constant", "linear", "exponential", "inverse_sigmoid"]


@dataclass(frozen=True)
class Loss:
    total: Float[Tensor, ""]
    """Summed over the target tokens, differentiable."""
    nll: Float[Tensor, ""]
    """Summed negative log-likelihood without label smoothing, for perplexity."""
    count: int
    """Target tokens."""


class Objective(Protocol):
    """A model and a batch of the kinds that belong to it."""

    def __call__(self, model: Any, batch: Any, update: int) -> Loss: ...


@dataclass(frozen=True)
class TeacherForcing:
    """Which share of its inputs a decoder is given from the data; the others are its own words.

    Scheduled sampling (Bengio et al. 2015, section 2.4), a pure function of the update u. With x = u /
    updates, at most 1, the share goes from `begin` to `end` by

        linear            begin + (end − begin) · x
        exponential       begin · (end / begin)^x
        inverse_sigmoid   k / (k + exp(u / k)), stretched to both ends; k puts its middle at half of `updates`
    """

    begin: float = 1.0
    end: float | None = None
    schedule: ForcingSchedule = "constant"
    updates: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.begin <= 1:
            raise UserError(f"teacher_forcing: expected a share from 0 to 1, found {self.begin}")
        for name, value in (("end", self.end), ("updates", self.updates)):
            if self.schedule == "constant" and value is not None:
                raise UserError(
                    f"teacher_forcing_{name}: a constant share has none, found {value}; "
                    "set teacher_forcing_schedule, or leave it out"
                )
            if self.schedule != "constant" and value is None:
                raise UserError(f"teacher_forcing_{name}: the schedule {self.schedule} needs it; set it")
        if self.end is not None and not 0 <= self.end <= self.begin:
            raise UserError(
                f"teacher_forcing_end: expected a share from 0 to teacher_forcing, which is {self.begin}, "
                f"found {self.end}"
            )
        if self.schedule == "exponential" and not self.end:
            raise UserError("teacher_forcing_end: an exponential never reaches 0; choose a share above it")
        if self.updates is not None and self.updates < 1:
            raise UserError(
                f"teacher_forcing_updates: expected a whole number of at least 1, found {self.updates}"
            )

    @property
    def samples(self) -> bool:
        """Whether the decoder is ever fed its own words."""
        return self.begin < 1 or (self.end is not None and self.end < 1)

    def share(self, update: int) -> float:
        if self.end is None or self.updates is None:
            return self.begin
        x = min(1.0, update / self.updates)
        if self.schedule == "linear":
            return self.begin + (self.end - self.begin) * x
        if self.schedule == "exponential":
            return self.begin * (self.end / self.begin) ** x
        return self.end + (self.begin - self.end) * _inverse_sigmoid(x, self.updates)


ALWAYS = TeacherForcing()


class CrossEntropy:
    """J = Σ_t −log p(y_t | y_<t, x), optionally with label smoothing (Vaswani et al. 2017, section 5.4).

    With less than full teacher forcing, y_<t is in part what the model itself said at those positions.
    """

    def __init__(self, label_smoothing: float = 0.0, forcing: TeacherForcing = ALWAYS) -> None:
        if not 0 <= label_smoothing < 1:
            raise UserError(
                f"objective.label_smoothing: expected a share from 0 up to 1, found {label_smoothing}"
            )
        self.label_smoothing, self.forcing = label_smoothing, forcing

    def __call__(self, model: EncoderDecoder, batch: PairBatch | PackedPairs, update: int = 0) -> Loss:
        hidden, target = self._passed(model, batch, update)
        return _of_rows(model, hidden, target, self.label_smoothing, batch.num_tokens)

    def _passed(
        self, model: EncoderDecoder, batch: PairBatch | PackedPairs, update: int
    ) -> tuple[Float[Tensor, "R D"], Int[Tensor, "R"]]:
        """What the decoder gave, and what it should have said there."""
        if isinstance(batch, PackedPairs):
            return model.packed(batch)[0], batch.tgt_out[0]
        share = self.forcing.share(update)
        if share == 1:
            hidden = model(batch.src_ids, batch.src_mask, batch.tgt_in)
        else:
            coins = torch.rand(batch.tgt_in.shape, device=batch.tgt_in.device)
            hidden = decode_own_words(model, batch, given=coins < share)
        (hidden,), target = _rows([hidden], batch)
        return hidden, target


def said(model: EncoderDecoder, hidden: Float[Tensor, "B T D"], batch: PairBatch, smoothing: float) -> Loss:
    """The cross-entropy of what a decoder gave."""
    (rows,), target = _rows([hidden], batch)
    return _of_rows(model, rows, target, smoothing, batch.num_tokens)


def _of_rows(
    model: EncoderDecoder,
    hidden: Float[Tensor, "R D"],
    target: Int[Tensor, "R"],
    smoothing: float,
    tokens: int,
) -> Loss:
    pad_id = model.vocab.pad_id
    if model.projection is None:
        total, nll = cross_entropy(hidden, target, pad_id, smoothing)
    else:
        weight, bias = model.projection.weight, model.projection.bias
        total, nll = projected_cross_entropy(hidden, weight, bias, target, pad_id, smoothing)
    return Loss(total, nll, tokens)


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


class RDrop:
    """Cross-entropy of two passes with different dropout, and how far they are apart (`nn/r_drop.py`).

    Two passes, not one over a doubled batch: some dropout is held for a whole pass.
    """

    def __init__(self, weight: float, label_smoothing: float = 0.0) -> None:
        self.weight, self.label_smoothing = weight, label_smoothing

    def __call__(
        self,
        model: EncoderDecoder,
        batch: PairBatch | PackedPairs,
        update: int = 0,  # noqa: ARG002
    ) -> Loss:
        if isinstance(batch, PackedPairs):
            (first, second), target = [model.packed(batch)[0] for _ in range(2)], batch.tgt_out[0]
        else:
            passes = [model(batch.src_ids, batch.src_mask, batch.tgt_in) for _ in range(2)]
            (first, second), target = _rows(passes, batch)
        vocab, projection = model.vocab, model.projection
        options = (target, vocab.pad_id, self.label_smoothing, self.weight)
        if projection is not None and usable(first, projection.weight):
            both = torch.stack([first, second])
            total, nll = projected_r_drop(both, projection.weight, projection.bias, *options)
        else:
            total, nll = r_drop(first, second, model.project, vocab.tgt_size, *options)
        return Loss(total, nll, batch.num_tokens)


def _rows(
    passes: Sequence[Float[Tensor, "B T D"]], batch: PairBatch
) -> tuple[list[Tensor], Int[Tensor, "R"]]:
    """What the decoder gave and what it should have said, position by position."""
    hidden = [each.flatten(0, 1) for each in passes]  # B·T D
    target = batch.tgt_out.flatten()
    if target.device.type == "cpu":  # on a GPU, asking which rows are padding would make the host wait
        rows = batch.tgt_mask.flatten().nonzero()[:, 0]
        hidden, target = [each[rows] for each in hidden], target[rows]
    return hidden, target


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


def decode_own_words(
    model: EncoderDecoder, batch: PairBatch, given: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T D"]:
    """Position by position over the length of the data: where `given`, the decoder is fed the data's word,
    elsewhere the one it found best at the position before. It begins with `<s>` in any case."""
    state = model.start(model.encode(batch.src_ids, batch.src_mask))
    given = given | ~batch.tgt_mask  # padding is not worth a word
    hidden: list[Tensor] = []
    for t in range(batch.tgt_in.size(1)):
        last = batch.tgt_in[:, t]
        if hidden:
            last = torch.where(given[:, t], last, _best_words(model, hidden[-1]))
        out, state = model.step(last, state)
        hidden.append(out)
    return torch.stack(hidden, dim=1)


def _best_words(model: EncoderDecoder, hidden: Float[Tensor, "N D"]) -> Int[Tensor, "N"]:
    """As a greedy search would choose: neither padding nor a second beginning."""
    logits = model.project(hidden.detach()).detach()
    logits[:, model.vocab.pad_id] = -torch.inf
    logits[:, model.vocab.bos_id] = -torch.inf
    return logits.argmax(dim=-1)


def _inverse_sigmoid(x: float, updates: int) -> float:
    """From 1 at x = 0 to 0 at x = 1. Bengio's curve k / (k + exp(u / k)) has its middle at u = k·ln k, and is
    k / (k + 1) at its beginning and 1 / (k + 1) at twice its middle."""
    k = 1 + updates / 2
    for _ in range(50):  # Newton's method for k·ln k = updates / 2
        k = (k + updates / 2) / (math.log(k) + 1)
    height = 1 / (1 + math.exp(x * updates / k - math.log(k)))
    return (height * (k + 1) - 1) / (k - 1)
