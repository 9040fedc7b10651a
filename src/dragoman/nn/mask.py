"""Which positions may be looked at. True = may look.

Every batch of today is padded at its end; this is the one place that knows it, so that packed batches can
come without touching a model.
"""

from dataclasses import dataclass

import torch

from dragoman.shapes import Bool, Int, Tensor


@dataclass(frozen=True)
class Mask:
    """`visible` is broadcast over heads and queries; `causal` hides what lies ahead of each query.

    The causal part stays a flag, because fused kernels skip the hidden half where a tensor makes them
    compute it. With a tensor of memory positions longer than the queries, the queries are the last ones.
    """

    visible: Bool[Tensor, "B 1 #Q M"] | None = None
    causal: bool = False

    def dense(self, queries: int, memory: int, device: torch.device) -> Bool[Tensor, "#B 1 #Q M"] | None:
        """The same mask as one tensor, or None where everything may be seen."""
        if not self.causal:
            return self.visible
        ahead = memory - queries
        lower = torch.ones(queries, memory, dtype=torch.bool, device=device).tril(ahead)[None, None]
        return lower if self.visible is None else lower & self.visible


EVERYTHING = Mask()
CAUSAL = Mask(causal=True)


def padding(mask: Bool[Tensor, "B M"]) -> Mask:
    """Hide the padded positions of a memory."""
    if mask.device.type == "cpu" and bool(mask.all()):  # asking a GPU would make the host wait for it
        return EVERYTHING
    return Mask(mask[:, None, None, :])


def lengths(mask: Bool[Tensor, "B M"]) -> Int[Tensor, "B"]:
    """How many positions of each row hold tokens; the last of them stands at this number less one.

    A row without any counts as one position, since sequence kernels know no empty sequence.
    """
    return mask.sum(dim=1).clamp(min=1)
