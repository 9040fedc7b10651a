"""What a decoder should have said after its source: cross-entropy, plain or of two passes."""

from collections.abc import Sequence

import torch

from dragoman.data.batch import PairBatch
from dragoman.data.packed import PackedPairs
from dragoman.errors import UserError
from dragoman.kernels import usable
from dragoman.models.base import EncoderDecoder
from dragoman.nn.loss import cross_entropy, projected_cross_entropy
from dragoman.nn.r_drop import projected_r_drop, r_drop
from dragoman.objectives.forcing import ALWAYS, TeacherForcing, decode_own_words
from dragoman.objectives.loss import Loss
from dragoman.shapes import Float, Int, Tensor


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
        return _loss_of_rows(model, hidden, target, self.label_smoothing, batch.num_tokens)

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
    """What the decoder gave and what it should have said, position by position."""
    hidden = [each.flatten(0, 1) for each in passes]  # B·T D
    target = batch.tgt_out.flatten()
    if target.device.type == "cpu":  # on a GPU, asking which rows are padding would make the host wait
        rows = batch.tgt_mask.flatten().nonzero()[:, 0]
        hidden, target = [each[rows] for each in hidden], target[rows]
    return hidden, target
