"""Recurrent layers: one stack reads whole sequences by the fused kernels, or goes on step by step.

rnn     h = tanh(W x + U h' + b)                                            Elman 1990
gru     update and reset gates                                              Cho et al. 2014
lstm    input, forget and output gates around a cell                        Hochreiter & Schmidhuber 1997

x ─ layer 1 ─┬─ dropout ─ layer 2 ─ + ─┬─ dropout ─ layer 3 ─ + ─▶          residuals: Wu et al. 2016
             └──────────────────────┘  └──────────────────────┘
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from dragoman.nn.init import recurrent_weights
from dragoman.nn.mask import lengths
from dragoman.shapes import Bool, Float, Int, Tensor

Cell = Literal["rnn", "gru", "lstm"]
CELLS: dict[str, type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]] = {
    "rnn": nn.RNN,
    "gru": nn.GRU,
    "lstm": nn.LSTM,
}


@dataclass(frozen=True)
class RecurrentState:
    """The past of every layer in one vector a row; an LSTM has its cell beside it."""

    hidden: Float[Tensor, "L N D"]
    cell: Float[Tensor, "L N D"] | None = None

    def rows(self, rows: Int[Tensor, "R"]) -> "RecurrentState":
        cell = None if self.cell is None else self.cell.index_select(1, rows)
        return RecurrentState(self.hidden.index_select(1, rows), cell)


class RecurrentStack(nn.Module):
    """Layers of width `dim`. Where they read in both directions, each direction has half of it."""

    def __init__(
        self,
        cell: Cell,
        in_dim: int,
        dim: int,
        num_layers: int,
        dropout: float = 0.0,
        bidirectional: bool = False,
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
        self.dropout = dropout

    def read(self, x: Float[Tensor, "B S I"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        """Whole padded sequences from a zero state. Padding is never read, and comes out as zeros."""
        packed = pack_padded_sequence(x, lengths(mask).cpu(), batch_first=True, enforce_sorted=False)
        data = packed.data  # tokens I: the padding is gone
        for i, layer in enumerate(self.layers):
            fed = PackedSequence(
                self._between(i, data), packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices
            )
            out = layer(fed)[0].data
            data = out if i == 0 else data + out
        done = PackedSequence(data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
        return pad_packed_sequence(done, batch_first=True, total_length=x.size(1))[0]

    def forward(
        self, x: Float[Tensor, "N T I"], state: RecurrentState
    ) -> tuple[Float[Tensor, "N T D"], RecurrentState]:
        """Go on from a state by one position or by many; for layers of one direction."""
        hidden, cell = [], []
        for i, layer in enumerate(self.layers):
            past = state.hidden[i : i + 1]
            if state.cell is None:
                out, after = layer(self._between(i, x), past)
            else:
                out, (after, kept) = layer(self._between(i, x), (past, state.cell[i : i + 1]))
                cell.append(kept)
            hidden.append(after)
            x = out if i == 0 else x + out
        return x, RecurrentState(torch.cat(hidden), torch.cat(cell) if cell else None)

    def _between(self, layer: int, x: Float[Tensor, "*B I"]) -> Float[Tensor, "*B I"]:
        return F.dropout(x, self.dropout, self.training) if layer and self.dropout else x
