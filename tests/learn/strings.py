"""Short random strings to copy or to reverse, and a model that learns to."""

from collections.abc import Callable
from typing import Literal

import torch

from dragoman.data.batch import collate, pad_sources
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.scorer import Scorer
from dragoman.learning.cross_entropy import CrossEntropy
from dragoman.models import build_model
from dragoman.models.base import Vocab
from searching import search

LETTERS = 12
Task = Literal["copy", "reverse"]


def answer(task: Task, string: list[int]) -> list[int]:
    return string if task == "copy" else string[::-1]


def strings(count: int, shortest: int, longest: int, generator: torch.Generator) -> list[list[int]]:
    lengths = torch.randint(shortest, longest + 1, (count,), generator=generator).tolist()
    return [torch.randint(3, 3 + LETTERS, (n,), generator=generator).tolist() for n in lengths]


class Learner:
    """A fresh model and strings for it that are not held out. `lengths` tells the shortest and the longest
    strings of each update, from the updates done."""

    def __init__(
        self,
        kind: str,
        config: object,
        task: Task,
        held_out: list[list[int]],
        *,
        batch: int,
        lengths: Callable[[int], tuple[int, int]],
        rate: float = 5e-3,
    ) -> None:
        torch.manual_seed(0)
        self.generator = torch.Generator().manual_seed(1)
        self.task, self.held_out, self.batch, self.lengths, self.rate = task, held_out, batch, lengths, rate
        self.never = {tuple(s) for s in held_out if len(s) > 3}  # the shortest are too few to be kept apart
        self.model = build_model(kind, config, Vocab(3 + LETTERS, 3 + LETTERS, shared=True)).eval()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), weight_decay=0)
        self.objective, self.updates = CrossEntropy(), 0

    def update(self) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * min((self.updates + 1) / 50, 1.0)
        drawn = strings(self.batch, *self.lengths(self.updates), self.generator)
        pairs = [(s, answer(self.task, s)) for s in drawn if tuple(s) not in self.never]
        loss = self.objective(self.model.train(), collate(pairs))
        self.optimizer.zero_grad()
        (loss.total / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.model.eval()
        self.updates += 1

    def share_right(self, beam: int = 1) -> float:
        """Of the strings that were held out, those that come right to the letter."""
        found = search(Scorer([self.model]), *pad_sources(self.held_out), SearchConfig(beam=beam))
        said = [list(best.tokens[:-1]) for best, *_ in found]
        right = sum(ours == answer(self.task, s) for ours, s in zip(said, self.held_out, strict=True))
        return right / len(self.held_out)
