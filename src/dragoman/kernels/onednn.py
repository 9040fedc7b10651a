"""Matrix products of few rows on a CPU, with the weight in oneDNN's own layout.

A search step multiplies some tens of rows with every matrix of the decoder. The plain product rearranges the
matrix every time. Rearranged once, the product is 1.1 to 5 times as fast, most for the fewest rows. The
rearranged copy doubles the memory of a weight; it lives as long as its parameter.
"""

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from dragoman.shapes import Float, Tensor

_MOST_ROWS = 512  # with more rows the plain product is as fast
_LAYOUT_ROWS = 64  # a layout for one row is slow for more; one for many rows is good for all
_WIDE = 1024  # outputs from which a single row gains
_LARGE = 1 << 17  # elements of a matrix from which a few rows gain
_MUCH = 1 << 22  # multiplications from which any matrix gains
_layouts = WeakIdKeyDictionary()  # parameter: ((address, version), weight in oneDNN's layout)


def refusal(x: Float[Tensor, "*B D"], weight: Float[Tensor, "V D"]) -> str | None:
    """Why this product is better made by plain torch, or None."""
    if x.device.type != "cpu":
        return "it is for the CPU"
    if torch.is_grad_enabled():
        return "gradients are recorded"
    if not _is_faster(x.numel() // weight.size(1), weight):
        return "the plain product is as fast for so many rows and columns"
    if not x.dtype == weight.dtype == torch.float32 or torch.is_autocast_enabled("cpu"):
        return "it is for float32"
    return None if available else "this build of torch has no oneDNN"


def parameter_refusal(x: Float[Tensor, "*B D"], weight: Float[Tensor, "V D"]) -> str | None:
    """The same for a weight whose layout would be kept. Only frozen parameters are: an optimizer does not
    always mark what it changes, and a tensor made for one call would be rearranged for that call."""
    if weight.requires_grad:
        return "the weight is trained"
    if not isinstance(weight, nn.Parameter) or weight.is_inference():
        return "changes of this weight could not be noticed"
    return refusal(x, weight)


def kept_layout(weight: Float[Tensor, "V D"]) -> Tensor:
    """The layout of a parameter, made again when the parameter has changed."""
    state = weight.data_ptr(), weight._version  # writing raises the version, replacing moves the address
    known = _layouts.get(weight)
    if known is None or known[0] != state:
        known = _layouts[weight] = state, layout(weight.detach())
    return known[1]


def layout(weight: Float[Tensor, "V D"]) -> Tensor:
    return torch.ops.mkldnn._reorder_linear_weight(weight, _LAYOUT_ROWS)


def product(x: Float[Tensor, "*B D"], arranged: Tensor, bias: Float[Tensor, "V"] | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, arranged, bias, "none", [], "")


def _is_faster(rows: int, weight: Tensor) -> bool:
    if rows < 2:
        return rows == 1 and weight.size(0) >= _WIDE
    return rows <= _MOST_ROWS and (weight.numel() >= _LARGE or rows * weight.numel() >= _MUCH)


def _is_available() -> bool:
    """torch does not document these operators, so they are tried before use."""
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        x = torch.arange(32.0).view(2, 1, 16)
        found = product(x, layout(torch.eye(16)), torch.ones(16))
        return bool(torch.equal(found, x + 1))
    except (AttributeError, RuntimeError):
        return False


available = _is_available()
