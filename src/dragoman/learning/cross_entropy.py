"""The loss of decoders: cross-entropy, plain, with two passes (R-Drop), with penalties, or with an attention
head that is trained to follow a word alignment; and the same loss as a validation measures it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch

from dragoman.data.batch import PairBatch, PieceLinks
from dragoman.data.packed import PackedPairs
from dragoman.errors import UserError
from dragoman.kernels import usable
from dragoman.learning.loss import Loss, Objective
from dragoman.models import Network
from dragoman.models.base import AlignmentGuide, EncoderDecoder
from dragoman.nn.attention_kernels import open_tap
from dragoman.nn.loss import cross_entropy, projected_cross_entropy, widest
from dragoman.nn.r_drop import projected_r_drop, r_drop
from dragoman.runs.objective import ALWAYS, ObjectiveConfig, TeacherForcing
from dragoman.shapes import Bool, Float, Int, Tensor


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
    """The pieces that a greedy search would choose, excluding padding and a second `<s>`."""
    logits = model.project(hidden.detach()).detach().clone()  # a model may give scores that are not projected
    logits[:, model.vocab.pad_id] = -torch.inf
    logits[:, model.vocab.bos_id] = -torch.inf
    return logits.argmax(dim=-1)


class CrossEntropy(Objective):
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
        return _loss_of_rows(model, hidden, target, self.label_smoothing, batch.num_tokens)

    def _passed(
        self, model: EncoderDecoder, batch: PairBatch | PackedPairs, update: int
    ) -> tuple[Float[Tensor, "R D"], Int[Tensor, "R"]]:
        """The decoder outputs and the targets at the same positions."""
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


class RDrop(Objective):
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


class Penalised(Objective):
    """Cross-entropy, and penalties on what the last layer gives (Merity et al. 2018, section 4.3):

        J + Σ_t α · mean (m ⊙ h_t)² + β · mean (h_t − h_{t−1})²

    α keeps activations small (AR), β lets them change slowly (TAR); m is the mask of the last dropout. Both
    sums go over the pieces that are asked for.
    """

    def __init__(self, activation: float, temporal: float, label_smoothing: float = 0.0) -> None:
        self.activation, self.temporal, self.label_smoothing = activation, temporal, label_smoothing

    def __call__(self, model: EncoderDecoder, batch: PairBatch, update: int = 0) -> Loss:  # noqa: ARG002
        decoder: Any = model.decoder
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


def decoder_objective(config: ObjectiveConfig, model: EncoderDecoder) -> Objective:
    """The objective of a decoder: cross-entropy with the configured additions."""
    forcing, guide = config.forcing(), config.guided_alignment
    if forcing.samples and not model.abilities.step_gradients:
        raise UserError(
            "objective.teacher_forcing: this model's decoder cannot learn step by step, and so not from its "
            "own words; leave it at 1, or choose a recurrent decoder (model.kind rnn, or mixed with one)"
        )
    if config.r_drop:
        return RDrop(config.r_drop, config.label_smoothing)
    if config.penalised:
        return _penalised(config, model)
    objective = CrossEntropy(config.label_smoothing, forcing)
    return GuidedAlignment(objective, guide, model) if guide.weight else objective


def _penalised(config: ObjectiveConfig, model: EncoderDecoder) -> Penalised:
    if not model.abilities.separates_dropout:
        raise UserError(
            "objective.activation_penalty: penalties are for model.kind ulmfit, whose decoder tells what it "
            "gives from what dropout leaves of it; set activation_penalty and temporal_penalty to 0"
        )
    return Penalised(config.activation_penalty, config.temporal_penalty, config.label_smoothing)


def loss_of_hidden(
    model: EncoderDecoder, hidden: Float[Tensor, "B T D"], batch: PairBatch, smoothing: float
) -> Loss:
    """The cross-entropy of what a decoder gave."""
    (rows,), target = _rows([hidden], batch)
    return _loss_of_rows(model, rows, target, smoothing, batch.num_tokens)


def _loss_of_rows(
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


def _rows(
    passes: Sequence[Float[Tensor, "B T D"]], batch: PairBatch
) -> tuple[list[Tensor], Int[Tensor, "R"]]:
    """The decoder outputs and the targets, flattened by position."""
    hidden = [each.flatten(0, 1) for each in passes]  # B·T D
    target = batch.tgt_out.flatten()
    if target.device.type == "cpu":  # on a GPU, asking which rows are padding would make the host wait
        rows = batch.tgt_mask.flatten().nonzero()[:, 0]
        hidden, target = [each[rows] for each in hidden], target[rows]
    return hidden, target


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


FREE_POSITIONS = 128
"""A loss with the model's own output reads no further: outputs such as trees would take most of the time."""
_LOGITS_AT_ONCE = 1 << 24


def forced_and_free_loss(
    model: EncoderDecoder, batches: Iterable[PairBatch], device: torch.device
) -> dict[str, float]:
    """The loss with teacher forcing and with the model's own output, over the same positions."""
    forced, free = torch.zeros(2, 2, dtype=widest(device), device=device)
    tokens = 0
    for whole in batches:
        batch = _beginning(whole)
        forced += loss_and_correct(
            model, *at_target_tokens(model(batch.src_ids, batch.src_mask, batch.tgt_in), batch)
        )
        own = decode_own_words(model, batch, given=torch.zeros_like(batch.tgt_mask))
        free += loss_and_correct(model, *at_target_tokens(own, batch))
        tokens += batch.num_tokens
    return {"forced_loss": forced[0].item() / tokens, "free_loss": free[0].item() / tokens}


def _beginning(batch: PairBatch) -> PairBatch:
    """The first positions of the targets: each costs a step of the decoder."""
    tgt_in, tgt_out, tgt_mask = (
        part[:, :FREE_POSITIONS] for part in (batch.tgt_in, batch.tgt_out, batch.tgt_mask)
    )
    tokens = int(tgt_mask.sum())
    return replace(batch, tgt_in=tgt_in, tgt_out=tgt_out, tgt_mask=tgt_mask, num_tokens=tokens)


def at_target_tokens(hidden: Tensor, batch: PairBatch) -> tuple[Tensor, Tensor]:
    """The decoder's outputs at the target tokens, and the targets."""
    return hidden[batch.tgt_mask], batch.tgt_out[batch.tgt_mask]


def per_token(sums: Tensor, tokens: int) -> dict[str, float]:
    loss, accuracy = (sums / tokens).tolist()
    return {"loss": loss, "perplexity": float(np.exp(min(loss, 700.0))), "accuracy": accuracy}


def loss_and_correct(model: Network, hidden: Tensor, targets: Tensor) -> Tensor:
    """Two sums over tokens: the negative log-likelihood, and the number of correct predictions."""
    sums = torch.zeros(2, dtype=widest(hidden.device), device=hidden.device)
    for rows, target in _chunks(hidden, targets, model):
        logits = cast(Callable[[Tensor], Tensor], model.project)(rows).float()
        sums[0] += torch.nn.functional.cross_entropy(logits, target, reduction="sum")
        sums[1] += (logits.argmax(dim=-1) == target).sum()
    return sums


def _chunks(hidden: Tensor, target: Tensor, model: Network) -> Iterator[tuple[Tensor, Tensor]]:
    """Split into chunks, because the logits of all positions would be the largest tensor."""
    rows = max(1, _LOGITS_AT_ONCE // model.vocab.tgt_size)
    yield from zip(hidden.split(rows), target.split(rows), strict=True)
