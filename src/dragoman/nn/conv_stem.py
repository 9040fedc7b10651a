"""A small convolutional stem in front of a Transformer over images (Xiao et al. 2021): two convolutions over
the pixels, and then a vector for every patch.

    patches ─ put together ─▶ image ─ 3 × 3 ─ norm, GELU ─ 3 × 3 ─ norm, GELU ─ patch × patch ─▶ a vector each

The first two read beyond the borders of a patch. There are as many vectors as patches, so that nothing else
of the model changes.
"""

import math

import torch.nn.functional as F
from torch import nn

from dragoman.errors import UserError
from dragoman.shapes import Float, Tensor


class ConvStem(nn.Module):
    """From patches of `input_dim` numbers in `channels`, in rows of `columns`, to vectors of `width`."""

    def __init__(self, input_dim: int, channels: int, columns: int, width: int) -> None:
        super().__init__()
        self.channels, self.columns, self.size = channels, columns, patch_side(input_dim, channels)
        middle = max(8, width // 4), max(8, width // 2)
        self.first = nn.Conv2d(channels, middle[0], 3, padding=1)
        self.second = nn.Conv2d(middle[0], middle[1], 3, padding=1)
        self.patch = nn.Conv2d(middle[1], width, self.size, stride=self.size)
        self.first_norm, self.second_norm = (nn.GroupNorm(1, count) for count in middle)
        self.reset()

    def reset(self) -> None:
        """As in He et al. (2015) before a GELU, as in Glorot & Bengio (2010) at the end; biases are zero."""
        for layer in (self.first, self.second):
            nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
        nn.init.xavier_uniform_(self.patch.weight.view(len(self.patch.weight), -1))
        for layer in (self.first, self.second, self.patch):
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)

    def forward(self, vectors: Float[Tensor, "B T I"]) -> Float[Tensor, "B T D"]:
        count, places, _ = vectors.shape
        if places % self.columns:
            raise UserError(
                f"model.columns: {places} patches do not fill rows of {self.columns}; set it to the number "
                "of patches in a row"
            )
        rows, size = places // self.columns, self.size
        grid = vectors.view(count, rows, self.columns, self.channels, size, size)
        image = grid.permute(0, 3, 1, 4, 2, 5).reshape(count, self.channels, rows * size, self.columns * size)
        x = F.gelu(self.first_norm(self.first(image)))
        x = F.gelu(self.second_norm(self.second(x)))
        return self.patch(x).flatten(2).transpose(1, 2)


def patch_side(input_dim: int, channels: int) -> int:
    """The side of a square patch with so many numbers."""
    side = math.isqrt(input_dim // channels)
    if side * side * channels != input_dim:
        raise UserError(
            f"input_dim: {input_dim} numbers are not the pixels of a square in {channels} channels"
        )
    return side
