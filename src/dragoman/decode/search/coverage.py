"""The coverage penalty: how much attention every source position has received.

    cp(X; Y) = Σ_j log min(Σ_i a_ij, 1)          Wu et al. 2016, equation 14; the search multiplies it by β

a_ij is the mean over the heads of the decoder's last cross-attention at the step that writes y_i, `</s>`
included. A module marks cross-attention by `looks_at_memory = True`: by its shape alone it could not be told
from a self-attention over as many positions.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from dragoman.errors import UserError
from dragoman.nn.attention_kernels import open_tap
from dragoman.shapes import Bool, Float, Tensor

_LEAST = 1e-10
"""A position without attention costs the log of this, not infinity."""


class Watched:
    """The cross-attention of a model while it is recorded."""

    def __init__(self) -> None:
        self._last: nn.Module | None = None
        self._seen: dict[nn.Module, list[Tensor]] = {}

    def _keep(self, module: nn.Module, weights: Tensor) -> None:
        if getattr(module, "looks_at_memory", False):
            self._last = module
            self._seen.setdefault(module, []).append(weights.mean(dim=1))  # B Q S

    def last_layer(self, source_positions: int) -> Float[Tensor, "B Q S"]:
        """Attention of the last cross-attention module. A module that runs position by position has several
        records."""
        if self._last is None:
            raise UserError("coverage: this model has no attention to the source; set coverage to 0")
        weights = torch.cat(self._seen[self._last], dim=1)
        if weights.size(-1) != source_positions:
            raise UserError(
                f"coverage: this model looks at {weights.size(-1)} places, not at the {source_positions} "
                "source tokens; set coverage to 0"
            )
        return weights


@contextmanager
def watch() -> Iterator[Watched]:
    """Record the cross-attention of the one model that runs inside the `with` block."""
    watched = Watched()
    with open_tap(watched._keep):
        yield watched


def covered(seen: Float[Tensor, "*N S"], mask: Bool[Tensor, "*N S"]) -> Float[Tensor, "*N"]:
    """Σ_j log min(seen_j, 1) over the positions with tokens; 0 if all are covered."""
    return seen.clamp(min=_LEAST, max=1.0).log().masked_fill(~mask, 0.0).sum(dim=-1)
