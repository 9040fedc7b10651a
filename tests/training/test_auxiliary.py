"""The loss of a language model beside that of a task, with a toy task and with translation."""

from dataclasses import dataclass

import torch

from battery.models import make
from dragoman.data.batch import collate
from dragoman.learning.auxiliary import WithLanguageModel
from dragoman.learning.cross_entropy import CrossEntropy
from dragoman.learning.loss import Loss, Objective
from dragoman.models.base import EncoderDecoder


@dataclass(frozen=True)
class Text:
    ids: torch.Tensor
    mask: torch.Tensor


class Task(torch.nn.Module):
    """A network under the name that the models of tasks give it."""

    def __init__(self) -> None:
        super().__init__()
        self.network = make("gpt")


class Toy(Objective):
    def __call__(self, model: Task, batch: Text, update: int = 0) -> Loss:  # noqa: ARG002
        total = model.network.decoder.positions.weight.sum()  # type: ignore[union-attr]
        return Loss(total, total.detach(), 3)


def by_hand(network: EncoderDecoder, rows: list[list[int]]) -> float:
    """The mean of −log p of every piece after the first, row by row, without padding."""
    losses = []
    for row in rows:
        ids = torch.tensor([row])
        read = network.read(ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids))
        logits = network.project(read)[0, :-1].log_softmax(-1)
        losses += [-logits[n, piece].item() for n, piece in enumerate(row[1:])]
    return sum(losses) / len(losses)


def test_a_toy_task() -> None:
    model = Task()
    rows = [[2, 5, 9, 4], [2, 7]]
    ids = torch.tensor([rows[0], [*rows[1], 0, 0]])
    batch = Text(ids, ids != 0)
    loss = WithLanguageModel(Toy(), 0.5, model)(model, batch, 1)
    plain = Toy()(model, batch, 1)
    expected = plain.total + 0.5 * 3 * by_hand(model.network, rows)
    torch.testing.assert_close(loss.total, expected, atol=1e-10, rtol=0)
    assert (loss.nll, loss.count) == (plain.nll, plain.count)
    loss.total.backward()
    assert model.network.decoder.embedding.weight.grad is not None  # type: ignore[union-attr]


def test_translation_that_also_reads() -> None:
    """`<s>` is never asked for."""
    model = make("gpt")
    batch = collate([([5, 9, 4], [3, 4]), ([7], [6])])
    task = CrossEntropy()
    loss, plain = WithLanguageModel(task, 0.3, model)(model, batch, 1), task(model, batch, 1)
    mean = by_hand(model, [[5, 9, 4, 2], [7, 2]])
    torch.testing.assert_close(loss.total, plain.total + 0.3 * plain.count * mean, atol=1e-10, rtol=0)
