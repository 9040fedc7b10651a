"""The convolutional block of Gehring et al. 2017, section 3.2, for whole sequences and step by step.

    x ─┬─ dropout ─ the k inputs around or before a position, side by side ─ W · + b ─ GLU ─ + ─ ·√½ ─▶
       └────────────────────────────────────────────────────────────────────────────────────┘

    GLU([A; B]) = A ⊙ σ(B)                        Dauphin et al. 2017

A causal block sees a position and those before it. A block that is not causal sees equally far to both sides.
With dilation r the inputs are r positions apart (Kalchbrenner et al. 2016, ByteNet). Beyond the ends of a
sequence there are zeros.

The convolution is one matrix product over gathered inputs, so one position and many use the same code.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.nn.init import normal_linear
from dragoman.nn.state import InputWindow
from dragoman.shapes import Float, Tensor

HALVE_VARIANCE = math.sqrt(0.5)  # of a sum of two terms (Gehring et al. 2017, section 3.4)


class ConvolutionBlock(nn.Module):
    """Gated convolution of `kernel_width` inputs in a residual connection."""

    def __init__(
        self, dim: int, kernel_width: int, dilation: int = 1, causal: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.dim, self.kernel_width, self.dilation = dim, kernel_width, dilation
        self.reach = (kernel_width - 1) * dilation  # from the first input to the last
        self.left = self.reach if causal else self.reach // 2
        self.dropout = dropout
        self.gates = normal_linear(kernel_width * dim, 2 * dim, gain=4 * (1 - dropout))

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """All positions. The caller sets padding to zero."""
        length = x.size(1)
        padded = F.pad(self._drop(x), (0, 0, self.left, self.reach - self.left))
        inputs = [padded[:, i * self.dilation :][:, :length] for i in range(self.kernel_width)]
        return self._gate(x, torch.cat(inputs, dim=-1))

    def start(self, rows: int, like: Tensor) -> InputWindow:
        return InputWindow.empty(rows, self.reach, self.dim, like)

    def step(
        self, x: Float[Tensor, "N 1 D"], window: InputWindow, position: int
    ) -> tuple[Float[Tensor, "N 1 D"], InputWindow]:
        """One further position of a causal block; `position` counts from 0."""
        kept = self._drop(x)
        inputs = torch.cat([*window.every(self.dilation, position), kept], dim=-1)  # N 1 kD
        return self._gate(x, inputs), window.put(kept, position)

    def _drop(self, x: Float[Tensor, "N T D"]) -> Float[Tensor, "N T D"]:
        return F.dropout(x, self.dropout, self.training)

    def _gate(self, x: Float[Tensor, "N T D"], inputs: Float[Tensor, "N T kD"]) -> Float[Tensor, "N T D"]:
        return (x + F.glu(self.gates(inputs), dim=-1)) * HALVE_VARIANCE
