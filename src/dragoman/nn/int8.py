"""Matrix products in whole numbers on a CPU: a quarter of the bytes, and a quarter of the time or less.

    ŵ_ij = round(w_ij / s_i),  s_i = max_j |w_ij| / 127        once
    x̂_nj = round(x_nj / r_n),  r_n = max_j |x_nj| / 127        in every product
    y_ni ≈ r_n s_i Σ_j x̂_nj ŵ_ij + b_i

Every row has a scale of its own, so the other rows of a batch change nothing. A weight is said to be of this
kind once (`quantize`), and `packed.linear` asks for it; the parameter stays as it is, for all other uses.
"""

from collections.abc import Iterable

import torch
from torch.utils.weak import WeakIdKeyDictionary

from dragoman.errors import UserError
from dragoman.shapes import Float, Int, Tensor

_ZERO = 128  # unsigned inputs are what the processors' instructions take: 0 is in the middle
_GREATEST = 127
_LAYOUT_ROWS = 64
_known = WeakIdKeyDictionary()  # parameter: Int8Weight


class Int8Weight:
    """A weight as whole numbers, in the layout of the kernel."""

    def __init__(self, numbers: Int[Tensor, "V D"], scales: Float[Tensor, "V"]) -> None:
        self.numbers, self.scales = numbers, scales
        self.zeros = torch.zeros(len(numbers), dtype=torch.int32)
        self.packed = torch.ops.onednn.qlinear_prepack(numbers, [_LAYOUT_ROWS, numbers.size(1)])

    @classmethod
    def of(cls, weight: Float[Tensor, "V D"]) -> "Int8Weight":
        weight = weight.detach()
        scales = weight.abs().amax(dim=1).clamp_min(torch.finfo(weight.dtype).tiny) / _GREATEST
        return cls((weight / scales[:, None]).round().to(torch.int8), scales)

    def rows(self, places: Int[Tensor, "C"]) -> "Int8Weight":
        """Some rows of it, for a shortlist."""
        return Int8Weight(self.numbers[places], self.scales[places])

    def __call__(self, x: Float[Tensor, "*B D"], bias: Float[Tensor, "V"] | None) -> Float[Tensor, "*B V"]:
        flat = x.reshape(-1, x.size(-1))
        scales = flat.abs().amax(dim=1, keepdim=True).clamp_min_(torch.finfo(x.dtype).tiny) / _GREATEST
        numbers = flat.div(scales).add_(_ZERO + 0.5).to(torch.uint8)  # what is cut off then is rounded
        y = torch.ops.onednn.qlinear_pointwise(
            numbers,
            1.0,
            _ZERO,
            self.packed,
            self.scales,
            self.zeros,
            None,
            1.0,
            0,
            torch.float32,
            "none",
            [],
            "",
        )
        y = y.mul_(scales) if bias is None else torch.addcmul(bias, y, scales)
        return y.view(*x.shape[:-1], -1)


def quantize(weights: Iterable[Tensor]) -> None:
    """From now on `packed.linear` makes products with these frozen weights in whole numbers."""
    if not available:
        raise UserError("precision: this processor or this torch has no products of int8; choose float32")
    for weight in weights:
        _known[weight] = Int8Weight.of(weight)


def quantized(weight: Tensor) -> Int8Weight | None:
    return _known.get(weight) if len(_known) else None


def _is_available() -> bool:
    """The operators are torch's own, for its compiler: not documented, so they are tried before use."""
    try:
        weight = torch.arange(-16.0, 16.0).view(2, 16)
        found = Int8Weight.of(weight)(torch.eye(16), torch.ones(2))
    except (AttributeError, RuntimeError):
        return False
    return bool(torch.allclose(found, weight.t() + 1, atol=0.1))


available = _is_available()
