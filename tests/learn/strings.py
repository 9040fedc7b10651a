"""Short random strings to copy or to reverse, and a loop that is as short."""

from collections.abc import Callable
from typing import Literal

import torch

from dragoman.data.batch import collate, pad_sources
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.search.search import search
from dragoman.learning.cross_entropy import CrossEntropy
from dragoman.models import build
from dragoman.models.base import EncoderDecoder, Vocab

LETTERS = 12
Task = Literal["copy", "reverse"]


def answer(task: Task, string: list[int]) -> list[int]:
    return string if task == "copy" else string[::-1]


def strings(count: int, shortest: int, longest: int, generator: torch.Generator) -> list[list[int]]:
    lengths = torch.randint(shortest, longest + 1, (count,), generator=generator).tolist()
    return [torch.randint(3, 3 + LETTERS, (n,), generator=generator).tolist() for n in lengths]


def learnt(
    kind: str,
    config: object,
    task: Task,
    held_out: list[list[int]],
    *,
    updates: int,
    rate: float,
    batch: int,
    lengths: Callable[[int], tuple[int, int]],
) -> EncoderDecoder:
    """A fresh model after so many updates on strings that are not held out. `lengths` tells the shortest and
    the longest of each update, from the updates done."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    never = {tuple(s) for s in held_out if len(s) > 3}  # the shortest are too few to be kept apart
    size = 3 + LETTERS
    model = build(kind, config, Vocab(size, size, shared=True))
    optimizer, objective = torch.optim.AdamW(model.parameters(), weight_decay=0), CrossEntropy()
    for update in range(updates):
        for group in optimizer.param_groups:
            group["lr"] = rate * min((update + 1) / 50, (updates - update) / (updates - 50))
        drawn = [s for s in strings(batch, *lengths(update), generator) if tuple(s) not in never]
        loss = objective(model, collate([(s, answer(task, s)) for s in drawn]))
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


def share_right(model: EncoderDecoder, task: Task, held_out: list[list[int]], beam: int = 1) -> float:
    found = search(Scorer([model]), *pad_sources(held_out), SearchConfig(beam=beam))
    said = [list(best.tokens[:-1]) for best, *_ in found]
    right = sum(ours == answer(task, s) for ours, s in zip(said, held_out, strict=True))
    return right / len(held_out)
