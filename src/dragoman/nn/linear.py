"""Linear layers, their initialisation, and their kernels (listed in `kernel_choice.LINEAR`).

`quantize` makes int8 a property of the modules of a model. Their parameters stay as they are: they are saved,
copied and moved as before, and the int8 form follows them.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.errors import UserError
from dragoman.kernels import int8, onednn
from dragoman.kernels.int8 import Int8Weight
from dragoman.nn.kernel_choice import LINEAR, choose
from dragoman.shapes import Float, Int, Tensor


class Multiplies(nn.Module):
    """A module with one weight that inputs are multiplied with; in int8 once `quantize` has been called."""

    weight: Tensor
    _int8: tuple[tuple[int, int | None], Int8Weight] | None = None

    @property
    def is_quantized(self) -> bool:
        return self._int8 is not None

    def quantize(self) -> None:
        self._int8 = _state(self.weight), Int8Weight.of(self.weight)

    def int8_weight(self) -> Int8Weight:
        """The int8 form of the weight, made again when the weight was changed, loaded or copied."""
        assert self._int8 is not None, "quantize comes first"
        if self._int8[0] != _state(self.weight):
            self.quantize()
        return self._int8[1]


def _state(weight: Tensor) -> tuple[int, int | None]:
    """Identifies the content of the weight: writing raises the version, replacing changes the address."""
    return weight.data_ptr(), None if weight.is_inference() else weight._version


class Linear(Multiplies, nn.Linear):
    """`nn.Linear`, computed by the fastest kernel that can."""

    takes_pairs = True
    """Whether its matrix can be replaced by one with a low-rank pair (`nn/lora.py`)."""

    def forward(self, input: Float[Tensor, "*B D"]) -> Float[Tensor, "*B F"]:
        return linear(input, self.weight, self.bias, self)


def linear(
    x: Float[Tensor, "*B D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, "V"] | None = None,
    owner: Multiplies | None = None,
) -> Float[Tensor, "*B V"]:
    """`F.linear` by the fastest kernel that can; `owner` is the module of the weight, if it has one."""
    return choose(LINEAR, x, weight, bias, owner).run(x, weight, bias, owner)


def quantize(model: nn.Module) -> None:
    """Switch the linear layers and projections of a model to int8, outside training."""
    if not int8.available:
        raise UserError("precision: this CPU or this torch has no int8 products; choose float32")
    for module in model.modules():
        if isinstance(module, Multiplies):
            module.quantize()


class SelectedRows:
    """A product with some rows of a projection: those of a shortlist, for one batch."""

    def __init__(self, owner: Multiplies, bias: Float[Tensor, "V"] | None, rows: Int[Tensor, "C"]) -> None:
        self.int8 = owner.int8_weight().rows(rows) if owner.is_quantized else None
        self.weight, self.bias = owner.weight.detach()[rows], None if bias is None else bias[rows]
        self.layout: Tensor | None = None

    def __call__(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B C"]:
        if self.int8 is not None:
            return self.int8(x, self.bias)
        if onednn.refusal(x, self.weight) is not None:
            return F.linear(x, self.weight, self.bias)
        if self.layout is None:
            self.layout = onednn.layout(self.weight)
        return onednn.product(x, self.layout, self.bias)


def xavier_linear(in_dim: int, out_dims: Sequence[int], bias: bool = True, first_gain: float = 1.0) -> Linear:
    """Several linear layers in one, each initialised as if it were separate.

    Uniform in ±√(6 / (in + out)) (Glorot & Bengio 2010), the first one times `first_gain`; biases are zero.
    """
    linear = Linear(in_dim, sum(out_dims), bias=bias)
    with torch.no_grad():
        for number, block in enumerate(linear.weight.split(list(out_dims))):
            nn.init.xavier_uniform_(block, gain=first_gain if number == 0 else 1.0)
        if bias:
            linear.bias.zero_()
    return linear


def normal_linear(in_dim: int, out_dim: int, gain: float = 1.0) -> Linear:
    """Normal with variance gain / in; biases are zero (Gehring et al. 2017, section 3.5).

    The gain is 4 before a GLU and 1 elsewhere, each times the share of the input that dropout keeps.
    """
    linear = Linear(in_dim, out_dim)
    nn.init.normal_(linear.weight, std=(gain / in_dim) ** 0.5)
    nn.init.zeros_(linear.bias)
    return linear
