"""Every model learns to copy and to reverse strings that it has never seen."""

import pytest
import torch

from dragoman.models.convs2s import ConvS2SConfig
from dragoman.models.mixed import MixedConfig
from dragoman.models.rnn import RnnConfig
from dragoman.models.transformer import TransformerConfig
from learn.strings import Learner, Task, strings
from until_learnt import learn_until

_TRANSFORMER = {"num_layers": 2, "model_dim": 48, "num_heads": 4, "ff_dim": 96, "dropout": 0.0, "norm": "pre"}
_RNN = {"model_dim": 48, "dropout": 0.0}

LEARNERS: dict[str, tuple[str, object]] = {
    "transformer": ("transformer", TransformerConfig(**_TRANSFORMER)),
    "rnn-additive": ("rnn", RnnConfig(**_RNN, cell="rnn")),
    "gru-general-luong": ("rnn", RnnConfig(**_RNN, cell="gru", attention="general", wiring="luong")),
    "lstm-none": ("rnn", RnnConfig(**_RNN, attention="none")),
    "convs2s": ("convs2s", ConvS2SConfig(num_layers=3, model_dim=48, dropout=0.0)),
    "transformer+gru": (
        "mixed",
        MixedConfig({"kind": "transformer", **_TRANSFORMER}, {"kind": "rnn", **_RNN, "cell": "gru"}),
    ),
    "gru+transformer": (
        "mixed",
        MixedConfig({"kind": "rnn", **_RNN, "cell": "gru"}, {"kind": "transformer", **_TRANSFORMER}),
    ),
}


@pytest.mark.parametrize("task", ["copy", "reverse"])
@pytest.mark.parametrize("name", list(LEARNERS))
def test_learnt(name: str, task: Task) -> None:
    """Seven strings of ten to the letter, where guessing has hardly any. It took 40 to 200 updates, whatever
    the seed and the instruction set; the limit is 3000."""
    kind, config = LEARNERS[name]
    held_out = strings(100, 1, 6, torch.Generator().manual_seed(2))
    learner = Learner(kind, config, task, held_out, batch=64, lengths=lambda _updates: (1, 6))
    learn_until(lambda: learner.share_right() >= 0.7, learner.update, at_most=3000, every=20)
    assert learner.share_right(beam=4) >= 0.5
