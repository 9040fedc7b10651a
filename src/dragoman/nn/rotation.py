"""The rotation of queries and keys by angles that grow with their position (Su et al. 2021, equation 34)."""

from dataclasses import dataclass

import torch

from dragoman.shapes import Float, Tensor


@dataclass(frozen=True)
class Rotation:
    """Rotates each pair of elements of a vector by an angle that grows with its position."""

    cos: Float[Tensor, "T A"]
    sin: Float[Tensor, "T A"]
    interleaved: bool
    """Pairs are neighbours, as in the paper; otherwise elements half a vector apart, as in Llama."""

    def __call__(self, x: Float[Tensor, "B H T E"]) -> Float[Tensor, "B H T E"]:
        pairs = x.unflatten(-1, (-1, 2) if self.interleaved else (2, -1))
        axis = -1 if self.interleaved else -2
        first, second = pairs.unbind(axis)  # B H T E/2
        turned = [first * self.cos - second * self.sin, first * self.sin + second * self.cos]
        return torch.stack(turned, axis).flatten(-2).to(x.dtype)
