"""Gates of recurrent cells: against NumPy, and against the states that the kernels of the model compute."""

import numpy as np
import pytest
import torch
from torch import nn

from battery.models import CASES, make
from dragoman.nn.recurrent import CELLS, Cell, RecurrentStack, RecurrentState
from dragoman.probe.forward_pass import ModelStage, walk
from dragoman.probe.gates import Fed, cells_of

SRC, TGT = [5, 9, 4, 11, 7], [8, 3, 12, 6]
RECURRENT = [
    "lstm-bahdanau", "lstm-luong-general", "gru-luong-feeding", "gru-held-dropout", "rnn-none", "lstm-none",
    "gru-once", "concat", "lstm-copy", "transformer+lstm", "gru+transformer", "convs2s+gru",
]  # fmt: skip
Numbers = dict[str, np.ndarray]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def by_hand(layer: nn.RNNBase, x: np.ndarray, state: np.ndarray, cell: np.ndarray) -> list[Numbers]:
    """In float64, gate by gate, by the formulas of torch's documentation."""
    w, u, b, a = (weight.detach().double().numpy() for weight in layer.all_weights[0])
    found = []
    for row in x:
        count = len(b) // layer.hidden_size
        seen, asked = np.split(w @ row + b, count), np.split(u @ state + a, count)
        if layer.mode == "LSTM":
            i, f, o = (sigmoid(seen[at] + asked[at]) for at in (0, 1, 3))
            g = np.tanh(seen[2] + asked[2])
            own = {"cell before": cell, "forget gate": f, "input gate": i, "candidate": g}
            cell = f * cell + i * g
            state = o * np.tanh(cell)
            own |= {"cell": cell, "output gate": o}
        elif layer.mode == "GRU":
            r, z = (sigmoid(seen[at] + asked[at]) for at in (0, 1))
            n = np.tanh(seen[2] + r * asked[2])
            own = {"state before": state, "reset gate": r, "update gate": z, "candidate": n}
            state = (1 - z) * n + z * state
        else:
            own = {"state before": state}
            state = np.tanh(seen[0] + asked[0])
        found.append(own | {"state": state})
    return found


@pytest.mark.parametrize("cell", list(CELLS))
def test_gates_are_those_of_numpy(cell: Cell) -> None:
    torch.manual_seed(3)
    stack = RecurrentStack(cell, 5, 7, 1).eval()
    x = torch.randn(4, 5)
    start = RecurrentState(torch.randn(1, 1, 7), torch.randn(1, 1, 7) if cell == "lstm" else None)
    (found,) = cells_of("stack", stack, [Fed(x, start)])
    first = start.hidden[0, 0].double().numpy()
    memory = np.zeros(7) if start.cell is None else start.cell[0, 0].double().numpy()
    expected = by_hand(stack.layers[0], x.double().numpy(), first, memory)
    assert list(found.gates) == list(expected[0])
    for name, values in found.gates.items():
        np.testing.assert_allclose(values.numpy(), [row[name] for row in expected], atol=1e-6)
    out, _ = stack(x[None], start)
    torch.testing.assert_close(found.gates["state"], out[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", RECURRENT)
def test_the_states_are_those_of_the_model(name: str) -> None:
    stages = walk(make(name).eval(), SRC, TGT).stages
    own = {stage.module: stage for stage in stages}
    cells = [stage for stage in stages if stage.kind == "cell"]
    assert cells
    for stage in cells:
        torch.testing.assert_close(stage.given, stage.gates["state"])
    encoder = [stage for stage in cells if stage.half == "encoder"]
    if encoder:
        torch.testing.assert_close(_top(encoder), own["encoder"].given, atol=1e-5, rtol=1e-4)
    decoder = [stage for stage in cells if stage.half == "decoder"]
    if decoder:
        read = own["decoder.readout"].before
        assert read is not None
        top = _top(decoder)
        width = top.size(1)
        places = [
            at
            for at in range(read.size(1) - width + 1)
            if torch.allclose(read[:, at : at + width], top, atol=1e-5)
        ]
        assert places, "the readout reads the state of the last layer"


def _top(cells: list[ModelStage]) -> torch.Tensor:
    """The output of the last layer: both directions, and residual connections after the first layer."""
    layers: dict[str, list[torch.Tensor]] = {}
    for stage in cells:
        layers.setdefault(stage.module, []).append(stage.given)
    return torch.stack([torch.cat(own, dim=-1) for own in layers.values()]).sum(dim=0)


def test_a_language_model_of_lstms_shows_its_cells() -> None:
    found = walk(make("ulmfit").eval(), SRC, TGT)
    *_, last = [stage for stage in found.stages if stage.kind == "cell"]
    torch.testing.assert_close(last.given, found.stages[-1].given, atol=1e-5, rtol=1e-4)
    assert found.stages[-1].kind == "out"


@pytest.mark.parametrize("name", [name for name in CASES if name not in RECURRENT])
def test_every_model_can_be_walked_through(name: str) -> None:
    found = walk(make(name).eval(), SRC, TGT)
    assert found.stages[-1].kind == "out"
    assert all(stage.given.dim() == 2 for stage in found.stages)
