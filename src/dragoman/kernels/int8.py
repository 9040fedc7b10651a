"""Matrix products in whole numbers on a CPU: a quarter of the bytes, and a quarter of the time or less.

    ŵ_ij = round(w_ij / s_i),  s_i = max_j |w_ij| / 127        once
    x̂_nj = round(x_nj / r_n),  r_n = max_j |x_nj| / 127        in every product
    y_ni ≈ r_n s_i Σ_j x̂_nj ŵ_ij + b_i

Every row has its own scale, so the result of a row does not depend on the rest of its batch.
"""

import torch

from dragoman.shapes import Float, Int, Tensor

_ZERO = 128  # the CPU's instructions take unsigned inputs: 0 becomes 128
_GREATEST = 127
_LAYOUT_ROWS = 64


class Int8Weight:
    """A weight as whole numbers, in oneDNN's layout. It is never changed after it is made."""

    def __init__(self, numbers: Int[Tensor, "V D"], scales: Float[Tensor, "V"]) -> None:
        self.numbers, self.scales = numbers, scales
        self.zeros = torch.zeros(len(numbers), dtype=torch.int32)
        self.packed = _pack(numbers)

    def __deepcopy__(self, _: dict[int, object]) -> "Int8Weight":
        """Copies share it; torch cannot copy oneDNN's layout."""
        return self

    @classmethod
    def of(cls, weight: Float[Tensor, "V D"]) -> "Int8Weight":
        weight = weight.detach()
        scales = weight.abs().amax(dim=1).clamp_min(torch.finfo(weight.dtype).tiny) / _GREATEST
        return cls((weight / scales[:, None]).round().to(torch.int8), scales)

    def rows(self, places: Int[Tensor, "C"]) -> "Int8Weight":
        """Some of its rows, for a shortlist."""
        return Int8Weight(self.numbers[places], self.scales[places])

    def __call__(self, x: Float[Tensor, "*B D"], bias: Float[Tensor, "V"] | None) -> Float[Tensor, "*B V"]:
        flat = x.reshape(-1, x.size(-1))
        scales = flat.abs().amax(dim=1, keepdim=True).clamp_min_(torch.finfo(x.dtype).tiny) / _GREATEST
        numbers = flat.div(scales).add_(_ZERO + 0.5).to(torch.uint8)  # + 0.5: the cast cuts off, this rounds
        y = _multiply(numbers, self.packed, self.scales, self.zeros).to(x.dtype)
        y = y.mul_(scales) if bias is None else torch.addcmul(bias, y, scales)
        return y.view(*x.shape[:-1], -1)


def _pack(numbers: Int[Tensor, "V D"]) -> Tensor:
    return torch.ops.onednn.qlinear_prepack(numbers, [_LAYOUT_ROWS, numbers.size(1)])


def _multiply(
    x: Int[Tensor, "R D"], packed: Tensor, scales: Float[Tensor, "V"], zeros: Int[Tensor, "V"]
) -> Float[Tensor, "R V"]:
    """Σ_j (x_nj − 128) ŵ_ij, times the scale of row i."""
    output = (None, 1.0, 0, torch.float32, "none", [], "")
    return torch.ops.onednn.qlinear_pointwise(x, 1.0, _ZERO, packed, scales, zeros, *output)


def _is_available() -> bool:
    """torch does not document these operators, and on CPUs without VNNI they saturate: try before use."""
    try:
        weight = torch.arange(-16.0, 16.0).view(2, 16)
        found = Int8Weight.of(weight)(torch.eye(16), torch.ones(2))
    except (AttributeError, RuntimeError):
        return False
    return bool(torch.allclose(found, weight.t() + 1, atol=0.1))


available = _is_available()
