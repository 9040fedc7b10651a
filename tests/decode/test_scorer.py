"""What travels with the sentences of a batch when some of them leave it."""

from dataclasses import dataclass
from typing import Self

import pytest
import torch
from torch import Tensor

from dragoman.decode.search.scorer import JointState


@dataclass(frozen=True)
class Marked:
    """A model's state that knows its rows: one number a row."""

    rows: Tensor
    beams: int = 1

    def expand(self, k: int) -> Self:
        return type(self)(self.rows.repeat_interleave(k), self.beams * k)

    def select(self, order: Tensor) -> Self:
        return type(self)(self.rows[order], self.beams)

    def keep(self, sentences: Tensor) -> Self:
        return type(self)(self.rows.view(-1, self.beams)[sentences].flatten(), self.beams)


@pytest.mark.parametrize("leaving", [[0], [1], [0, 2], [0, 1, 3], [3]])
def test_sentences_that_stay_keep_what_is_theirs(leaving: list[int]) -> None:
    """In whichever order they leave: shortlist, attention and state of a sentence stay together."""
    sentences, beams = 4, 3
    closed = torch.eye(sentences, 6, dtype=torch.bool)  # each sentence goes without another piece
    seen = torch.arange(sentences)[:, None].expand(sentences, 5).float()
    state = JointState((Marked(torch.arange(sentences)),), seen, closed=closed).expand(beams)
    kept = [sentence for sentence in range(sentences) if sentence not in leaving]
    left = state.keep(torch.tensor(kept))
    assert left.closed is not None and left.seen is not None
    assert left.closed.int().argmax(dim=1).tolist() == kept
    rows = [sentence for sentence in kept for _ in range(beams)]
    assert left.seen[:, 0].tolist() == rows
    (own,) = left.states
    assert isinstance(own, Marked) and own.rows.tolist() == rows


def test_reordered_beams_do_not_touch_the_shortlists() -> None:
    closed = torch.eye(2, 4, dtype=torch.bool)
    seen = torch.arange(2.0)[:, None].expand(2, 3)
    state = JointState((Marked(torch.arange(2)),), seen, closed=closed).expand(2)
    moved = state.select(torch.tensor([1, 1, 3, 2]))
    assert moved.beams == 2
    assert moved.closed is not None and torch.equal(moved.closed, closed)
    assert moved.seen is not None and moved.seen[:, 0].tolist() == [0, 0, 1, 1]
