"""The axis alphabet. Batch comes first everywhere.

    B batch   K beams   N = B·K rows of a search   S source positions   T target positions
    Q, M query and memory positions inside attention   H heads   D model width   E head width
    F feed-forward width   V vocabulary   L layers   I numbers of a vector

Signatures carry these letters as jaxtyping shapes; the test run checks them, `src/` never does.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

EncoderInput = Int[Tensor, "B S"] | Float[Tensor, "B S I"]
"""Input of an encoder: token ids, or vectors of I numbers."""

__all__ = ["Bool", "EncoderInput", "Float", "Int", "Tensor"]
