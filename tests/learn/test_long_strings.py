"""With attention a recurrent model reverses strings of 20 letters; one vector cannot hold them so soon."""

import pytest
import torch

from dragoman.models.rnn import RnnConfig
from learn.strings import Learner, strings
from until_learnt import learn_until

LONGEST = 20


def growing(updates: int) -> tuple[int, int]:
    """Short strings first; full length after 500 updates."""
    longest = min(LONGEST, 4 + updates * 16 // 500)
    return max(1, longest - 4), longest


def learner(attention: str) -> Learner:
    held_out = strings(100, LONGEST, LONGEST, torch.Generator().manual_seed(2))
    config = RnnConfig(cell="gru", model_dim=64, attention=attention, dropout=0.0)
    return Learner("rnn", config, "reverse", held_out, batch=32, lengths=growing)


@pytest.mark.slow
def test_attention_lifts_the_bottleneck() -> None:
    """With attention it took 500 or 550 updates with any seed and instruction set; the limit is 7500. After
    as many updates without attention no string came right, and a third of them may."""
    with_attention, without = learner("additive"), learner("none")
    updates = learn_until(
        lambda: with_attention.share_right() >= 0.7, with_attention.update, at_most=7500, every=50
    )
    for _ in range(updates):
        without.update()
    assert without.share_right() < 0.35
