"""A stack of recurrent layers, for whole sequences by fused kernels, or step by step.

rnn     h = tanh(W x + U h' + b)                                            Elman 1990
gru     update and reset gates                                              Cho et al. 2014
lstm    input, forget and output gates around a cell                        Hochreiter & Schmidhuber 1997

x ─ layer 1 ─┬─ dropout ─ layer 2 ─ + ─┬─ dropout ─ layer 3 ─ + ─▶          residuals: Wu et al. 2016
             └──────────────────────┘  └──────────────────────┘

`weight_dropout` drops single recurrent weights for a whole pass, and kernels stay fused (Merity et al. 2018).
`recurrent_dropout` drops units of the state, different ones for every sequence (Gal & Ghahramani 2016). No
fused kernel supports that, so training then goes position by position.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from dragoman.nn.dropout import NOTHING, StackMasks, draw_mask, dropout
from dragoman.nn.linear import linear
from dragoman.nn.mask import lengths
from dragoman.nn.recurrent_layer import LayerPast, advance, kernel, loop, recurrent_weights, settle
from dragoman.shapes import Bool, Float, Int, Tensor

Cell = Literal["rnn", "gru", "lstm"]
CELLS: dict[str, type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]] = {
    "rnn": nn.RNN,
    "gru": nn.GRU,
    "lstm": nn.LSTM,
}


@dataclass(frozen=True)
class RecurrentState:
    """The hidden state of every layer, and the cell of an LSTM."""

    hidden: Float[Tensor, "L N D"]
    cell: Float[Tensor, "L N D"] | None = None

    def rows(self, rows: Int[Tensor, "R"]) -> "RecurrentState":
        cell = None if self.cell is None else self.cell.index_select(1, rows)
        return RecurrentState(self.hidden.index_select(1, rows), cell)

    def cut(self) -> "RecurrentState":
        """The state for the next block, without gradients. Values that are not finite become 0: the update
        that produced them is skipped."""
        parts = [self.hidden] if self.cell is None else [self.hidden, self.cell]
        return RecurrentState(*(part.detach().nan_to_num(0.0, 0.0, 0.0) for part in parts))


class RecurrentStack(nn.Module):
    """Layers of width `dim`; of a bidirectional layer each direction has half of it.

    `variational`: dropout between layers drops the same units at every position of a sequence.
    """

    def __init__(
        self,
        cell: Cell,
        in_dim: int,
        dim: int,
        num_layers: int,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        variational: bool = False,
        recurrent_dropout: float = 0.0,
        weight_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        width = dim // 2 if bidirectional else dim
        layers = nn.ModuleList(
            CELLS[cell](in_dim if i == 0 else dim, width, batch_first=True, bidirectional=bidirectional)
            for i in range(num_layers)
        )
        self.layers = cast(Sequence[nn.RNNBase], layers)
        for layer in self.layers:
            recurrent_weights(layer)
        self.dim, self.width, self.directions = dim, width, 1 + bidirectional
        self.dropout, self.variational = dropout, variational
        self.recurrent_dropout, self.weight_dropout = recurrent_dropout, weight_dropout

    def draw(self, rows: int) -> StackMasks:
        """Dropout masks for whole sequences."""
        if not self.training:
            return NOTHING
        like, count = self.layers[0].all_weights[0][0], len(self.layers)
        between = past = weights = None
        if self.variational and self.dropout and count > 1:
            between = draw_mask(self.dropout, count - 1, rows, self.dim, like=like)
        if self.recurrent_dropout:
            shape = (count * self.directions, rows, self.width)
            past = draw_mask(self.recurrent_dropout, *shape, like=like)
        if self.weight_dropout:
            weights = tuple(
                dropout(weight, self.weight_dropout) for i in range(count) for weight in self._weights(i)
            )
        return StackMasks(between, past, weights)

    def read(self, x: Float[Tensor, "B S I"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        """Whole padded sequences from a zero state. Padding is not read, and its output is zero."""
        return self.read_through(x, mask, self.draw(len(x)))[0]

    def read_through(
        self, x: Float[Tensor, "B S I"], mask: Bool[Tensor, "B S"], masks: StackMasks = NOTHING
    ) -> tuple[Float[Tensor, "B S D"], RecurrentState]:
        """Read sequences with given masks. Also returns the state after the last token of every row."""
        if masks.past is not None:
            return self._read_by_position(x, mask, masks)
        packed = pack_padded_sequence(x, lengths(mask).cpu(), batch_first=True, enforce_sorted=False)
        data, between = packed.data, masks.between  # tokens I: the padding is gone
        ends: list[LayerPast] = []
        if between is not None:
            rows = torch.cat([torch.arange(size) for size in packed.batch_sizes.tolist()]).to(x.device)
            between = between[:, cast(Tensor, packed.sorted_indices)[rows]]  # J tokens D
        for i, layer in enumerate(self.layers):
            fed = self._between(i, data, between)
            start = fed.new_zeros(self.directions, len(x), self.width)
            past = start, start if layer.mode == "LSTM" else None
            out, end = kernel(layer, fed, past, self._weights(i, masks), packed.batch_sizes)
            ends.append(end)
            data = out if i == 0 else data + out
        done = PackedSequence(data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
        out = pad_packed_sequence(done, batch_first=True, total_length=x.size(1))[0]
        return out, _all_layers(ends).rows(cast(Tensor, packed.unsorted_indices))

    def _read_by_position(
        self, x: Float[Tensor, "B S I"], mask: Bool[Tensor, "B S"], masks: StackMasks
    ) -> tuple[Float[Tensor, "B S D"], RecurrentState]:
        ends: list[LayerPast] = []
        for i, layer in enumerate(self.layers):
            fed = self._between(i, x, _for_all_positions(masks.between))
            start = fed.new_zeros(self.directions, len(x), self.width)
            past = start, start if layer.mode == "LSTM" else None
            out, end = loop(layer, fed, past, self._weights(i, masks), self._past(i, masks), mask)
            ends.append(end)
            x = out if i == 0 else x + out
        return x.masked_fill(~mask[:, :, None], 0.0), _all_layers(ends)

    def forward(
        self, x: Float[Tensor, "N T I"], state: RecurrentState, masks: StackMasks = NOTHING
    ) -> tuple[Float[Tensor, "N T D"], RecurrentState]:
        """Many positions at once from a given state, for layers of one direction. `masks` were drawn when
        these sequences began."""
        ends: list[LayerPast] = []
        for i, layer in enumerate(self.layers):
            fed = self._between(i, x, _for_all_positions(masks.between))
            past = state.hidden[i : i + 1], None if state.cell is None else state.cell[i : i + 1]
            if masks.past is None:
                out, end = kernel(layer, fed, past, self._weights(i, masks))
            else:
                out, end = loop(layer, fed, past, self._weights(i, masks), self._past(i, masks))
            ends.append(end)
            x = out if i == 0 else x + out
        return x, _all_layers(ends)

    def ahead(self, x: Float[Tensor, "*B I"]) -> Float[Tensor, "*B G"]:
        """The contribution of the first part of the input to the gates of the first layer. It does not depend
        on outputs, so all positions are computed at once; `advance` adds the rest."""
        from_input, _, input_bias, bias = self.layers[0].all_weights[0]
        both = input_bias if self.layers[0].mode == "GRU" else input_bias + bias
        return F.linear(x, from_input[:, : x.size(-1)], both)

    def for_rest(self, dim: int, masks: StackMasks = NOTHING) -> Float[Tensor, "G J"]:
        """The weights of the first layer for what `advance` adds: of the last `dim` inputs and, except in a
        GRU, of the past state beside them. Taken once a pass, they accumulate one gradient, not one a
        step."""
        from_input = self.layers[0].all_weights[0][0]
        rest = from_input[:, from_input.size(1) - dim :]
        if self.layers[0].mode == "GRU":  # a gate stands between the past and the input
            return rest
        return torch.cat([rest, self._weights(0, masks)[0]], dim=1)

    def advance(
        self,
        seen: Float[Tensor, "N G"],
        rest: Float[Tensor, "N R"],
        weight: Float[Tensor, "G J"],
        state: RecurrentState,
        masks: StackMasks = NOTHING,
    ) -> tuple[Float[Tensor, "N D"], RecurrentState]:
        """One position: `seen` is the result of `ahead` for its input, `rest` the end of that input, and
        `weight` the result of `for_rest` when the sequences began."""
        hidden, cell, x = [], [], seen
        for i, layer in enumerate(self.layers):
            from_input, _, input_bias, bias = layer.all_weights[0]
            past = state.hidden[i], None if state.cell is None else state.cell[i]
            mask = None if masks.past is None else self._past(i, masks)[0]
            if i == 0 and layer.mode != "GRU":
                heard = past[0] if mask is None else past[0] * mask.to(past[0].dtype)
                gates = torch.addmm(seen, torch.cat([rest, heard], dim=1), weight.t())
                out, kept = settle(layer.mode, gates, past[1])
            else:
                if i:
                    seen = linear(self._between(i, x, masks.between), from_input, input_bias)
                elif rest.size(1):
                    seen = seen + F.linear(rest, weight)
                out, kept = advance(layer.mode, seen, past, self._weights(i, masks)[0], bias, mask)
            hidden.append(out)
            if kept is not None:
                cell.append(kept)
            x = x + out if i else out
        return x, RecurrentState(torch.stack(hidden), torch.stack(cell) if cell else None)

    def _between(
        self, layer: int, x: Float[Tensor, "*B I"], masks: Float[Tensor, "J *#B D"] | None
    ) -> Float[Tensor, "*B I"]:
        if not layer or not self.dropout:
            return x
        if self.variational:
            return x if masks is None else x * masks[layer - 1].to(x.dtype)
        return dropout(x, self.dropout, self.training)

    def _weights(self, layer: int, masks: StackMasks = NOTHING) -> Sequence[Float[Tensor, "G W"]]:
        """The recurrent weights of every direction of a layer."""
        if masks.weights is None:
            return [weights[1] for weights in self.layers[layer].all_weights]
        return masks.weights[layer * self.directions : (layer + 1) * self.directions]

    def _past(self, layer: int, masks: StackMasks) -> Float[Tensor, "P N W"]:
        assert masks.past is not None, "only the loop over positions has masks on the state"
        return masks.past[layer * self.directions : (layer + 1) * self.directions]


def _all_layers(ends: Sequence[LayerPast]) -> RecurrentState:
    """The final states of all layers and directions as one."""
    cells = [cell for _, cell in ends if cell is not None]
    return RecurrentState(torch.cat([hidden for hidden, _ in ends]), torch.cat(cells) if cells else None)


def _for_all_positions(masks: Float[Tensor, "J N D"] | None) -> Float[Tensor, "J N 1 D"] | None:
    return None if masks is None else masks[:, :, None]
