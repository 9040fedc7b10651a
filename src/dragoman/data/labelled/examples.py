"""Labelled examples in the form that training draws batches from."""

from collections.abc import Sequence

import numpy as np
import torch

from dragoman.data.batch import TaskBatch, pad
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import Example
from dragoman.data.labelled.layout import Item, Layout
from dragoman.data.sampler import CorpusRange
from dragoman.text.tokenizer import Tokenizer


class Labelled:
    """The `Examples` of a labelled task; see `learning/base.py`. Batches are not random."""

    def __init__(
        self,
        examples: Sequence[Example],
        task: TaskConfig,
        tokenizer: Tokenizer,
        corpora: Sequence[CorpusRange] | None = None,
    ) -> None:
        layout = Layout(task, tokenizer)
        self.task, self.examples, self.items = task, examples, layout.items(examples)
        self.cut = layout.cut
        self.src_lengths = np.array([item.length - 1 for item in self.items], dtype=np.int32)
        self.tgt_lengths = np.zeros(len(self.items), dtype=np.int32)  # a sampler counts one mark itself
        self.corpora = self._of_items(corpora or [CorpusRange(0, len(examples))])

    def __len__(self) -> int:
        return len(self.items)

    def origin(self, index: int) -> str:
        return self.examples[self.items[index].example].origin

    def batch(self, numbers: np.ndarray, epoch: int) -> TaskBatch:  # noqa: ARG002
        return collate_rows([self.items[number] for number in numbers.tolist()], self.task)

    def _of_items(self, corpora: Sequence[CorpusRange]) -> list[CorpusRange]:
        """The item ranges of the corpora. One example may become several items."""
        owners = np.array([item.example for item in self.items], dtype=np.int64)
        return [
            CorpusRange(
                int(np.searchsorted(owners, corpus.start)),
                int(np.searchsorted(owners, corpus.end)),
                corpus.weight,
            )
            for corpus in corpora
        ]


def collate_rows(items: Sequence[Item], task: TaskConfig) -> TaskBatch:
    rows = [row for item in items for row in item.rows]
    ids, mask = pad([row.ids for row in rows])
    segments, _ = pad([row.segments for row in rows])
    target = np.concatenate([item.target for item in items])
    asked = allowed = None
    if task.kind == "tag":
        places = [number * ids.size(1) + item.places for number, item in enumerate(items)]
        asked = torch.from_numpy(np.concatenate(places))
    if task.kind == "span":
        allowed = torch.zeros_like(mask)
        allowed[:, 0] = True
        for number, item in enumerate(items):
            allowed[number, torch.from_numpy(item.places)] = True
        target = target.reshape(-1, 2)
    choices = torch.tensor([len(item.rows) for item in items]) if task.kind == "choice" else None
    return TaskBatch(
        ids=ids,
        mask=mask,
        segments=segments,
        targets=torch.from_numpy(target),
        asked=asked,
        allowed=allowed,
        choices=choices,
        num_tokens=len(items) if asked is None else max(1, len(asked)),
    )
