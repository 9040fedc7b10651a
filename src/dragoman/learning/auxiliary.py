"""An auxiliary language-model loss for a task (Radford et al. 2018, equation 5):

    L₃ = L_task + λ · L_LM

L_LM is the mean over the input tokens after the first, each predicted from those before it. It is added to
the mean loss of the task, as in the authors' own code: the sums of their equation would give long texts more
weight.
"""

from typing import Any

import torch.nn.functional as F
from torch import nn

from dragoman.errors import UserError
from dragoman.learning.loss import Loss, Objective
from dragoman.shapes import Bool, Int, Tensor


class WithLanguageModel(Objective):
    """Any objective, plus the language-model loss of a left-to-right network."""

    def __init__(self, task: Objective, weight: float, model: nn.Module) -> None:
        self.task, self.weight = task, weight
        self.uses_every_weight, self.carried = task.uses_every_weight, task.carried
        if not _network(model).abilities.reads_in_decoder:
            raise UserError(
                f"transfer.auxiliary_lm: found {weight}, and this model does not read from left to right, so "
                "it is no language model of its source; set it to 0, or choose model.kind gpt"
            )

    def __call__(self, model: Any, batch: Any, update: int = 0) -> Loss:
        loss = self.task(model, batch, update)
        total, count = language_model(_network(model), *_text(batch))
        return Loss(loss.total + self.weight * loss.count * total / max(1, count), loss.nll, loss.count)


def language_model(network: Any, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> tuple[Tensor, int]:
    """−Σ log p(u_t | u_<t) over all tokens but the first of a row, and their number. `<s>` is an input but
    never predicted."""
    hidden = network.read(ids, mask, ids.new_zeros(ids.shape))
    asked = mask[:, 1:] & (ids[:, 1:] != network.vocab.bos_id)
    logits = network.project(hidden[:, :-1][asked])  # N V
    return F.cross_entropy(logits, ids[:, 1:][asked], reduction="sum"), len(logits)


def _network(model: Any) -> Any:
    """A task's model has its network under this name."""
    return getattr(model, "network", model)


def _text(batch: Any) -> tuple[Tensor, Tensor]:
    """The input: the source of pairs, or the text of a task."""
    return (batch.src_ids, batch.src_mask) if hasattr(batch, "src_ids") else (batch.ids, batch.mask)
