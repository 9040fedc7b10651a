"""The layers of a network as one vector a piece: γ Σ_j s_j h_j (Peters et al. 2018, equation 1)."""

from collections.abc import Sequence

import torch
from torch import nn

from dragoman.shapes import Float, Tensor


class ScalarMix(nn.Module):
    """s = softmax(w) and γ are learnt for a task; in the beginning all layers count alike."""

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(num_layers))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, layers: Sequence[Float[Tensor, "B T D"]]) -> Float[Tensor, "B T D"]:
        shares = self.weights.softmax(dim=0)
        mixed = sum(share * layer for share, layer in zip(shares, layers, strict=True))
        return self.scale * mixed

    def shares(self) -> list[float]:
        """How much each layer counts, from the embeddings to the last; they sum to 1."""
        return self.weights.detach().softmax(dim=0).tolist()
