"""With attention a recurrent model reverses strings of 20 letters; one vector cannot hold them."""

import pytest
import torch

from dragoman.models.rnn import RnnConfig
from learn.strings import learnt, share_right, strings

LONGEST, UPDATES = 20, 750


def growing(update: int) -> tuple[int, int]:
    """Short strings first; full length after two thirds of the updates."""
    longest = min(LONGEST, 4 + update * 24 // UPDATES)
    return max(1, longest - 4), longest


def share_reversed(attention: str) -> float:
    held_out = strings(300, LONGEST, LONGEST, torch.Generator().manual_seed(2))
    config = RnnConfig(cell="gru", model_dim=64, attention=attention, dropout=0.0)
    model = learnt("rnn", config, "reverse", held_out, updates=UPDATES, rate=5e-3, batch=32, lengths=growing)
    return share_right(model, "reverse", held_out)


@pytest.mark.slow
def test_attention_lifts_the_bottleneck() -> None:
    with_attention, without = share_reversed("additive"), share_reversed("none")
    assert with_attention > 0.99
    assert without < with_attention - 0.5
