"""Inside recurrent cells: the gates and states of every position.

LSTM   f, i, o = σ(W x + U h' + b)   g = tanh(W x + U h' + b)      c = f · c' + i · g      h = o · tanh(c)
GRU    r, z = σ(W x + U h' + b)      n = tanh(W x + b + r · (U h' + b))     h = (1 − z) · n + z · h'
RNN    h = tanh(W x + U h' + b)

The fused kernels return states and no gates, so these are computed again from what a cell has read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from dragoman.models.rnn import RnnDecoder
from dragoman.nn.recurrent import RecurrentStack, RecurrentState
from dragoman.shapes import Float, Tensor

Gates = Mapping[str, Float[Tensor, "P W"]]


@dataclass(frozen=True)
class Cells:
    """One direction of one layer."""

    module: str
    backward: bool
    """Whether it reads from right to left."""
    gates: Gates
    """In the order in which they are computed; the last one is `state`, what the cell gives out."""


@dataclass(frozen=True)
class Fed:
    """What a stack reads in one call: inputs, and the state that it begins with (zeros without one)."""

    inputs: Float[Tensor, "P I"]
    start: RecurrentState | None = None


def cells_of(name: str, stack: RecurrentStack, calls: Sequence[Fed]) -> list[Cells]:
    """All layers and directions of a stack; `calls` are the sequences that it read, one after the other."""
    parts = [_cells_of_call(stack, fed) for fed in calls]
    found = []
    for number in range(len(stack.layers) * stack.directions):
        layer, direction = divmod(number, stack.directions)
        gates = {key: torch.cat([own[number][key] for own in parts]).float() for key in parts[0][number]}
        found.append(Cells(f"{name}.layers.{layer}", bool(direction), gates))
    return found


def _cells_of_call(stack: RecurrentStack, fed: Fed) -> list[Gates]:
    """The gates of each layer and direction. Layers after the first have a residual connection."""
    found: list[Gates] = []
    x = fed.inputs.double().cpu()
    for number, layer in enumerate(stack.layers):
        own = [
            _cells(layer, direction, x, _first(fed.start, number * stack.directions + direction, layer))
            for direction in range(stack.directions)
        ]
        found += own
        out = torch.cat([gates["state"] for gates in own], dim=-1)
        x = x + out if number else out
    return found


def _first(start: RecurrentState | None, number: int, layer: nn.RNNBase) -> tuple[Tensor, Tensor]:
    """Hidden state and cell before the first position, of the one sentence."""
    nothing = torch.zeros(layer.hidden_size, dtype=torch.float64)
    if start is None:
        return nothing, nothing
    cell = nothing if start.cell is None else start.cell[number, 0].double().cpu()
    return start.hidden[number, 0].double().cpu(), cell


def _cells(layer: nn.RNNBase, direction: int, x: Float[Tensor, "P I"], first: tuple[Tensor, Tensor]) -> Gates:
    from_input, from_past, input_bias, bias = (
        weight.detach().double().cpu() for weight in layer.all_weights[direction]
    )
    step = {"LSTM": _lstm, "GRU": _gru}.get(layer.mode, _plain)
    steps: list[dict[str, Tensor]] = []
    state, cell = first
    for seen in x.flip(0) if direction else x:
        gates = step(from_input @ seen + input_bias, from_past @ state + bias, state, cell)
        steps.append(gates)
        state, cell = gates["state"], gates.get("cell", cell)
    rows = {name: torch.stack([gates[name] for gates in steps]) for name in steps[0]}
    return {name: row.flip(0) for name, row in rows.items()} if direction else rows


def _lstm(seen: Tensor, asked: Tensor, _state: Tensor, cell: Tensor) -> dict[str, Tensor]:
    into, forget, new, out = (seen + asked).chunk(4)  # torch's order
    gates = {
        "cell before": cell,
        "forget gate": torch.sigmoid(forget),
        "input gate": torch.sigmoid(into),
        "candidate": torch.tanh(new),
    }
    after = gates["forget gate"] * cell + gates["input gate"] * gates["candidate"]
    opened = torch.sigmoid(out)
    return gates | {"cell": after, "output gate": opened, "state": opened * torch.tanh(after)}


def _gru(seen: Tensor, asked: Tensor, state: Tensor, _cell: Tensor) -> dict[str, Tensor]:
    (seen_reset, seen_update, seen_new), (reset, update, new) = seen.chunk(3), asked.chunk(3)
    opened, kept = torch.sigmoid(seen_reset + reset), torch.sigmoid(seen_update + update)
    candidate = torch.tanh(seen_new + opened * new)
    return {
        "state before": state,
        "reset gate": opened,
        "update gate": kept,
        "candidate": candidate,
        "state": (1 - kept) * candidate + kept * state,
    }


def _plain(seen: Tensor, asked: Tensor, state: Tensor, _cell: Tensor) -> dict[str, Tensor]:
    return {"state before": state, "state": torch.tanh(seen + asked)}


def fed_to_decoder(
    decoder: RnnDecoder,
    embedded: Float[Tensor, "T D"],
    bridge: Float[Tensor, "1 B"],
    contexts: Float[Tensor, "T M"],
    readout: Float[Tensor, "T D"],
) -> Fed:
    """In evaluation, from what other parts gave out. Beside a word the first layer reads the context or, with
    input feeding, the last output."""
    hidden, *cell = torch.tanh(bridge).view(decoder.parts, decoder.num_layers, 1, -1)
    beside = [embedded]
    if decoder.input_feeding:
        outputs = torch.tanh(readout)
        beside.append(torch.cat([torch.zeros_like(outputs[:1]), outputs[:-1]]))
    elif not decoder.luong:
        beside.append(contexts)
    return Fed(torch.cat(beside, dim=-1), RecurrentState(hidden, cell[0] if cell else None))
