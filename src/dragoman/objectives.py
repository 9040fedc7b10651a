"""What training minimises: Objective(model, batch) -> a summed loss and its count.

Losses are sums over target tokens; the training loop divides once per update by the tokens of the whole
update, so that accumulation and several processes give what one large batch gives.
"""

from dataclasses import dataclass

from dragoman.data.batch import PairBatch
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.nn.loss import cross_entropy, projected_cross_entropy
from dragoman.shapes import Float, Tensor


@dataclass(frozen=True)
class Loss:
    total: Float[Tensor, ""]
    """Summed over the target tokens, differentiable."""
    nll: Float[Tensor, ""]
    """Summed negative log-likelihood without label smoothing, for perplexity."""
    count: int
    """Target tokens."""


class CrossEntropy:
    """J = Σ_t −log p(y_t | y_<t, x), optionally with label smoothing (Vaswani et al. 2017, section 5.4)."""

    def __init__(self, label_smoothing: float = 0.0) -> None:
        if not 0 <= label_smoothing < 1:
            raise UserError(
                f"objective.label_smoothing: expected a share from 0 up to 1, found {label_smoothing}"
            )
        self.label_smoothing = label_smoothing

    def __call__(self, model: EncoderDecoder, batch: PairBatch) -> Loss:
        hidden = model(batch.src_ids, batch.src_mask, batch.tgt_in).flatten(0, 1)  # B·T D
        target = batch.tgt_out.flatten()
        if hidden.device.type == "cpu":  # on a GPU, asking which rows are padding would make the host wait
            rows = batch.tgt_mask.flatten().nonzero()[:, 0]
            hidden, target = hidden[rows], target[rows]
        pad_id, smoothing = model.vocab.pad_id, self.label_smoothing
        if model.projection is None:
            total, nll = cross_entropy(hidden, target, pad_id, smoothing)
        else:
            weight, bias = model.projection.weight, model.projection.bias
            total, nll = projected_cross_entropy(hidden, weight, bias, target, pad_id, smoothing)
        return Loss(total, nll, batch.num_tokens)
