"""One recurrent layer, computed in ways that torch's modules do not offer.

kernel   the fused kernel with other recurrent weights, so that the parameter is not overwritten
loop     position by position, with a dropout mask on the recurrent input, which no kernel supports
advance  one position, where the next input depends on the output: a kernel launch would cost more

         ┌────────── mask ◀─────────┐          the mask is the same at every position; the cell and
         ▼                          │          the update path have none, or they would shrink or
x ─ W ─ gates ─ cell or update ─────┴─▶ h      grow at every step
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.nn.linear import linear
from dragoman.shapes import Bool, Float, Tensor

_KERNELS: dict[str, Callable[..., Any]] = {"RNN_TANH": torch.rnn_tanh, "GRU": torch.gru, "LSTM": torch.lstm}

LayerPast = tuple[Float[Tensor, "P N W"], Float[Tensor, "P N W"] | None]
"""Hidden state and, for an LSTM, its cell; one entry a direction."""


def kernel(
    layer: nn.RNNBase,
    x: Float[Tensor, "*B I"],
    past: LayerPast,
    weights: Sequence[Float[Tensor, "G W"]],
    batch_sizes: Tensor | None = None,
) -> tuple[Float[Tensor, "*B D"], LayerPast]:
    """A padded batch `N T I` or, with `batch_sizes`, the data of a packed one. Always in the type of the
    weights: autocast may choose float16 for cuDNN, whose range is too small for gradients without scaling."""
    hidden, cell = past
    device, exact = x.device.type, weights[0].dtype
    if torch.is_autocast_enabled(device):
        with torch.autocast(device, enabled=False):
            begin = hidden.to(exact), None if cell is None else cell.to(exact)
            return kernel(layer, x.to(exact), begin, weights, batch_sizes)
    begin = hidden if cell is None else (hidden, cell)
    parameters = [
        parameter
        for (from_input, _, *biases), from_past in zip(layer.all_weights, weights, strict=True)
        for parameter in (from_input, from_past, *biases)
    ]
    shape = (True, 1, 0.0, layer.training, layer.bidirectional)  # biases, layers, dropout between them
    run = _KERNELS[layer.mode]
    if batch_sizes is None:
        out, *after = run(x, begin, parameters, *shape, True)
    else:
        out, *after = run(x, batch_sizes, begin, parameters, *shape)
    return out, (after[0], after[1] if cell is not None else None)


def loop(
    layer: nn.RNNBase,
    x: Float[Tensor, "N T I"],
    past: LayerPast,
    weights: Sequence[Float[Tensor, "G W"]],
    masks: Float[Tensor, "P N W"],
    visible: Bool[Tensor, "N T"] | None = None,
) -> tuple[Float[Tensor, "N T D"], LayerPast]:
    """The second direction, if there is one, reads backwards. The state does not change at padding, so that
    reading backwards begins at the last token."""
    outs, ends = [], []
    for direction, (from_input, _, input_bias, bias) in enumerate(layer.all_weights):
        state = past[0][direction], None if past[1] is None else past[1][direction]
        seen = F.linear(x, from_input, input_bias)  # N T G: the inputs of all positions at once
        places = range(x.size(1))
        out: list[Tensor] = []
        for t in reversed(places) if direction else places:
            new = advance(layer.mode, seen[:, t], state, weights[direction], bias, masks[direction])
            if visible is not None:
                new = _where(visible[:, t, None], new, state)
            state = new
            out.append(state[0])
        outs.append(torch.stack(out[::-1] if direction else out, dim=1))
        ends.append(state)
    hidden = torch.stack([end[0] for end in ends])
    cells = [end[1] for end in ends if end[1] is not None]
    return torch.cat(outs, dim=-1), (hidden, torch.stack(cells) if cells else None)


def advance(
    mode: str,
    seen: Float[Tensor, "N G"],
    state: tuple[Float[Tensor, "N W"], Float[Tensor, "N W"] | None],
    weight: Float[Tensor, "G W"],
    bias: Float[Tensor, "G"],
    mask: Float[Tensor, "N W"] | None = None,
) -> tuple[Float[Tensor, "N W"], Float[Tensor, "N W"] | None]:
    """The state after one position. `seen` is the input's contribution to the gates."""
    hidden = state[0] if mask is None else state[0] * mask.to(state[0].dtype)
    return _cell(mode, seen, linear(hidden, weight, bias), *state)


def _cell(
    mode: str,
    seen: Float[Tensor, "N G"],
    asked: Float[Tensor, "N G"],
    hidden: Float[Tensor, "N W"],
    cell: Float[Tensor, "N W"] | None,
) -> tuple[Float[Tensor, "N W"], Float[Tensor, "N W"] | None]:
    """`seen` comes from the input, `asked` from the past state; gates in torch's order."""
    if mode != "GRU":
        return settle(mode, seen + asked, cell)
    seen_reset, seen_update, seen_new = seen.chunk(3, dim=-1)
    reset, update, new = asked.chunk(3, dim=-1)
    update = torch.sigmoid(seen_update + update)
    new = torch.tanh(seen_new + torch.sigmoid(seen_reset + reset) * new)
    return (1 - update) * new + update * hidden, None


def settle(
    mode: str, gates: Float[Tensor, "N G"], cell: Float[Tensor, "N W"] | None
) -> tuple[Float[Tensor, "N W"], Float[Tensor, "N W"] | None]:
    """The new state of a tanh RNN or an LSTM, from the sum of input and past."""
    if mode == "RNN_TANH":
        return torch.tanh(gates), None
    assert cell is not None, "an LSTM has a cell"
    into, forget, new, out = gates.chunk(4, dim=-1)
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(into) * torch.tanh(new)
    return torch.sigmoid(out) * torch.tanh(cell), cell


def _where(
    visible: Bool[Tensor, "N 1"],
    new: tuple[Tensor, Tensor | None],
    old: tuple[Tensor, Tensor | None],
) -> tuple[Tensor, Tensor | None]:
    hidden = torch.where(visible, new[0], old[0])
    if new[1] is None or old[1] is None:
        return hidden, None
    return hidden, torch.where(visible, new[1], old[1])


def recurrent_weights(layer: nn.RNNBase) -> None:
    """Gate by gate: Xavier for input weights, orthogonal for recurrent weights (Saxe et al. 2014).

    Biases are zero, but that of an LSTM's forget gate is 1 (Jozefowicz et al. 2015).
    """
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            gates = parameter.split(layer.hidden_size)
            for gate in gates:
                if name.startswith("weight_ih"):
                    nn.init.xavier_uniform_(gate)
                elif name.startswith("weight_hh"):
                    nn.init.orthogonal_(gate)
                elif name.startswith("weight_hr"):  # the projection of an LSTM that has one
                    nn.init.xavier_uniform_(gate)
                else:
                    gate.zero_()
            if isinstance(layer, nn.LSTM) and name.startswith("bias_ih"):
                gates[1].fill_(1.0)  # torch keeps the gates in the order input, forget, cell, output
