"""The average attention network (Zhang et al. 2018, equations 1 to 4), a replacement for self-attention.

    x ─ mean of x₁ … x_t ─ feed-forward ─ g ─┐
    x ────────────────────────────────────── gate ─▶ i ⊙ x + f ⊙ g        i, f = σ(W [x; g])

All earlier positions have equal weight, so there are no attention weights to show. A step costs the same
however long the past is: the state is one sum.
"""

from dataclasses import dataclass

import torch
from torch import nn

from dragoman.nn.layer import FeedForward
from dragoman.nn.linear import xavier_linear
from dragoman.nn.mask import Mask
from dragoman.nn.positions import Relation
from dragoman.nn.state import Moves
from dragoman.shapes import Float, Int, Tensor


@dataclass(frozen=True)
class RunningSum:
    """The sum of the positions so far. It has the methods of a `KeyValueCache`."""

    total: Float[Tensor, "N D"]
    length: int = 0

    def append(self, x: Float[Tensor, "N D"]) -> "RunningSum":
        return RunningSum(self.total + x, self.length + 1)

    def expand(self, k: int) -> "RunningSum":
        return RunningSum(self.total.repeat_interleave(k, dim=0), self.length)

    def move(self, moves: Moves) -> "RunningSum":
        return RunningSum(self.total.index_copy(0, moves.target, self.total[moves.source]), self.length)

    def keep_rows(self, rows: Int[Tensor, "R"]) -> "RunningSum":
        return RunningSum(self.total[rows], self.length)


class AverageAttention(nn.Module):
    def __init__(self, model_dim: int, feedforward: FeedForward, bias: bool = True) -> None:
        super().__init__()
        self.model_dim = model_dim
        self.feedforward = feedforward
        self.gates = xavier_linear(2 * model_dim, [model_dim, model_dim], bias)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        mask: Mask,
        relation: Relation,  # noqa: ARG002
    ) -> Float[Tensor, "B T D"]:
        assert mask.causal and mask.visible is None, "average attention is for decoders"
        counts = torch.arange(1, x.size(1) + 1, device=x.device)[:, None]
        return self._gate(x, (x.cumsum(dim=1) / counts).to(x.dtype))

    def start(self, rows: int, like: Tensor) -> RunningSum:
        wide = torch.promote_types(like.dtype, torch.float32)  # a long sum in bfloat16 would stop growing
        return RunningSum(torch.zeros(rows, self.model_dim, dtype=wide, device=like.device))

    def step(
        self,
        x: Float[Tensor, "N 1 D"],
        past: RunningSum,
        relation: Relation,  # noqa: ARG002
    ) -> tuple[Float[Tensor, "N 1 D"], RunningSum]:
        past = past.append(x[:, 0])
        return self._gate(x, (past.total / past.length).to(x.dtype)[:, None]), past

    def _gate(self, x: Float[Tensor, "B T D"], average: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        seen = self.feedforward(average)
        of_input, of_past = self.gates(torch.cat([x, seen], dim=-1)).sigmoid().chunk(2, dim=-1)
        return of_input * x + of_past * seen
