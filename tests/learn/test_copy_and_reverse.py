"""Every model learns to copy and to reverse strings it has never seen; most of them to the letter."""

import pytest
import torch

from dragoman.models.convs2s import ConvS2SConfig
from dragoman.models.mixed import MixedConfig
from dragoman.models.rnn import RnnConfig
from dragoman.models.transformer import TransformerConfig
from learn.strings import Task, learnt, share_right, strings

_TRANSFORMER = {"num_layers": 2, "model_dim": 48, "num_heads": 4, "ff_dim": 96, "dropout": 0.0, "norm": "pre"}
_RNN = {"model_dim": 48, "dropout": 0.0}

LEARNERS: dict[str, tuple[str, object, float]] = {  # kind, config, the share that has to be right
    "transformer": ("transformer", TransformerConfig(**_TRANSFORMER), 0.99),
    "rnn-additive": ("rnn", RnnConfig(**_RNN, cell="rnn"), 0.9),
    "gru-general-luong": ("rnn", RnnConfig(**_RNN, cell="gru", attention="general", wiring="luong"), 0.9),
    "lstm-none": ("rnn", RnnConfig(**_RNN, attention="none"), 0.6),
    "convs2s": ("convs2s", ConvS2SConfig(num_layers=3, model_dim=48, dropout=0.0), 0.97),
    "transformer+gru": (
        "mixed",
        MixedConfig({"kind": "transformer", **_TRANSFORMER}, {"kind": "rnn", **_RNN, "cell": "gru"}),
        0.95,
    ),
    "gru+transformer": (
        "mixed",
        MixedConfig({"kind": "rnn", **_RNN, "cell": "gru"}, {"kind": "transformer", **_TRANSFORMER}),
        0.95,
    ),
}


@pytest.mark.parametrize("task", ["copy", "reverse"])
@pytest.mark.parametrize("name", list(LEARNERS))
def test_learnt(name: str, task: Task) -> None:
    kind, config, least = LEARNERS[name]
    held_out = strings(300, 1, 6, torch.Generator().manual_seed(2))
    model = learnt(
        kind, config, task, held_out, updates=300, rate=5e-3, batch=64, lengths=lambda _update: (1, 6)
    )
    right = [share_right(model, task, held_out, beam) for beam in (1, 4)]
    assert min(right) >= least, right
