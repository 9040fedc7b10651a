"""Matrix products of few rows on a CPU, with weights that lie as oneDNN reads them.

A step of a search multiplies some tens of rows with a large matrix. The plain product brings the matrix into
the kernel's layout every time; packed once, it is 1.2 to 4 times as quick, most for the fewest rows. Packed
weights are kept beside their parameter as long as that lives: twice the memory. Only frozen parameters are
packed (`requires_grad_(False)`, as a loaded run has them), since an optimizer does not always leave a trace.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from dragoman.shapes import Float, Tensor

_MOST_ROWS = 512  # with more the plain product is as quick
_packed = WeakIdKeyDictionary()  # parameter: (address, version), packed weight


def linear(
    x: Float[Tensor, "*B D"], weight: nn.Parameter, bias: Float[Tensor, "V"] | None = None
) -> Float[Tensor, "*B V"]:
    """`F.linear`, but for the last bits of float32; with a packed weight where that pays."""
    if not _pays(x, weight):
        return F.linear(x, weight, bias)
    now = weight.data_ptr(), weight._version  # what is written into bumps the version, what is replaced moves
    known = _packed.get(weight)
    if known is None or known[0] != now:
        known = now, torch.ops.mkldnn._reorder_linear_weight(weight.detach(), x.size(0))
        _packed[weight] = known
    return torch.ops.mkldnn._linear_pointwise(x, known[1], bias, "none", [], "")


def _pays(x: Tensor, weight: Tensor) -> bool:
    return (
        not weight.requires_grad
        and not torch.is_grad_enabled()
        and x.device.type == "cpu"
        and x.dim() == 2
        and 0 < x.size(0) <= _MOST_ROWS
        and x.dtype == weight.dtype == torch.float32
        and not weight.is_inference()  # such a one does not tell when it changes
        and not torch.is_autocast_enabled("cpu")
        and _available
    )


def _is_available() -> bool:
    """The operators are torch's own, for its compiler: not documented, so they are tried before use."""
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        weight, x = torch.eye(16), torch.arange(32.0).view(2, 16)
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, 2)
        found = torch.ops.mkldnn._linear_pointwise(x, packed, torch.ones(16), "none", [], "")
        return bool(torch.equal(found, x + 1))
    except (AttributeError, RuntimeError):
        return False


_available = _is_available()
