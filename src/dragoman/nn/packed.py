"""Matrix products of few rows on a CPU, with weights that lie as oneDNN reads them.

A step of a search multiplies some tens of rows with every matrix of the decoder. The plain product brings a
matrix into the kernel's layout every time; packed once, it is 1.1 to 5 times as quick, most for the fewest
rows. Packed weights are kept beside their parameter as long as that lives: twice the memory. Only frozen
parameters are packed (`requires_grad_(False)`, as a loaded run has them), since an optimizer does not always
leave a trace.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from dragoman.kernels import usable
from dragoman.nn.int8 import Int8Weight, quantized
from dragoman.shapes import Float, Int, Tensor

_MOST_ROWS = 512  # with more the plain product is as quick
_LAYOUT_ROWS = 64  # what is packed for one row is slow for more, and what is packed for many is good for all
_WIDE = 1024  # outputs from which a single row gains
_LARGE = 1 << 17  # numbers in a matrix from which a few rows gain
_MUCH = 1 << 22  # multiplications from which any matrix does
_packed = WeakIdKeyDictionary()  # parameter: (address, version), packed weight


class Linear(nn.Linear):
    """`nn.Linear`, packed where that pays."""

    def forward(self, input: Float[Tensor, "*B D"]) -> Float[Tensor, "*B F"]:
        return linear(input, self.weight, self.bias)


def linear(
    x: Float[Tensor, "*B D"], weight: Float[Tensor, "V D"], bias: Float[Tensor, "V"] | None = None
) -> Float[Tensor, "*B V"]:
    """`F.linear`, but for the last bits of float32; with a packed weight where that pays, in whole numbers
    where it is quantized (`nn/int8.py`), and on a GPU by kernels while half-precision numbers learn."""
    if (small := quantized(weight)) is not None and not torch.is_grad_enabled():
        return small(x, bias)
    if learns_in_half(x, weight):
        from dragoman.kernels.linear import half_linear

        return half_linear(x, weight, bias)
    if not _pays(x, weight):
        return F.linear(x, weight, bias)
    now = weight.data_ptr(), weight._version  # what is written into bumps the version, what is replaced moves
    known = _packed.get(weight)
    if known is None or known[0] != now:
        known = now, torch.ops.mkldnn._reorder_linear_weight(weight.detach(), _LAYOUT_ROWS)
        _packed[weight] = known
    return torch.ops.mkldnn._linear_pointwise(x, known[1], bias, "none", [], "")


def learns_in_half(x: Float[Tensor, "*B D"], weight: Float[Tensor, "V D"]) -> bool:
    """Half-precision numbers under autocast that meet weights kept in float32. cuDNN's recurrent layers give
    float16 whatever autocast says, and such numbers are left to it."""
    return (
        usable(x)
        and x.dtype != torch.float32
        and weight.dtype == torch.float32
        and torch.is_grad_enabled()
        and weight.requires_grad
        and not _is_foreign(x)
    )


def _is_foreign(x: Tensor) -> bool:
    """Whether autocast would make other numbers of these."""
    kind = x.device.type
    return torch.is_autocast_enabled(kind) and x.dtype != torch.get_autocast_dtype(kind)


class Fixed:
    """A product with some rows of a weight, which nobody changes: of a projection, for one batch."""

    def __init__(
        self, weight: Float[Tensor, "V D"], bias: Float[Tensor, "V"] | None, rows: Int[Tensor, "C"]
    ) -> None:
        small = quantized(weight)
        self.small: Int8Weight | None = None if small is None else small.rows(rows)
        self.weight, self.bias = weight.detach()[rows], None if bias is None else bias[rows]
        self.packed: Tensor | None = None

    def __call__(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B C"]:
        if self.small is not None:
            return self.small(x, self.bias)
        if not _can_pay(x, self.weight):
            return F.linear(x, self.weight, self.bias)
        if self.packed is None:
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight, _LAYOUT_ROWS)
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")


def _pays(x: Tensor, weight: Tensor) -> bool:
    return (
        _can_pay(x, weight)
        and not weight.requires_grad
        and isinstance(weight, nn.Parameter)  # what is made anew for a call would be packed for that one
        and not weight.is_inference()  # such a one does not tell when it changes
    )


def _can_pay(x: Tensor, weight: Tensor) -> bool:
    return (
        x.device.type == "cpu"
        and not torch.is_grad_enabled()
        and _is_quicker(x.numel() // weight.size(1), weight)
        and x.dtype == weight.dtype == torch.float32
        and not torch.is_autocast_enabled("cpu")
        and _available
    )


def _is_quicker(rows: int, weight: Tensor) -> bool:
    if rows < 2:
        return rows == 1 and weight.size(0) >= _WIDE
    return rows <= _MOST_ROWS and (weight.numel() >= _LARGE or rows * weight.numel() >= _MUCH)


def _is_available() -> bool:
    """The operators are torch's own, for its compiler: not documented, so they are tried before use."""
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        weight, x = torch.eye(16), torch.arange(32.0).view(2, 1, 16)
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, _LAYOUT_ROWS)
        found = torch.ops.mkldnn._linear_pointwise(x, packed, torch.ones(16), "none", [], "")
        return bool(torch.equal(found, x + 1))
    except (AttributeError, RuntimeError):
        return False


_available = _is_available()
