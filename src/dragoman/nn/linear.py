"""Linear layers, token embeddings, and the projection back to logits over the vocabulary.

Kernels are listed in `kernel_choice.LINEAR`. `quantize` makes int8 a property of the modules of a model.
Parameters stay as they are: they are saved, copied and moved as before, and the int8 form follows them.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.errors import UserError
from dragoman.kernels import int8, onednn
from dragoman.kernels.int8 import Int8Weight
from dragoman.nn.kernel_choice import LINEAR, choose_kernel
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
    return choose_kernel(LINEAR, x, weight, bias, owner).run(x, weight, bias, owner)


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


SILENCE = -1e4
"""Added to a logit: its probability becomes 0. Every float type can represent it."""


class TokenEmbedding(nn.Module):
    """One row of a matrix for every id, times √D where `scale` is set. Padding is the zero vector."""

    def __init__(self, size: int, dim: int, pad_id: int, scale: bool = True) -> None:
        super().__init__()
        self.weight = embedding_weight(size, dim)
        self.pad_id = pad_id
        self.scale = math.sqrt(dim) if scale else 1.0

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        vectors = F.embedding(ids, self.weight)
        if self.scale != 1:
            vectors = vectors * self.scale
        return vectors.masked_fill((ids == self.pad_id)[..., None], 0.0)


class Projection(Multiplies):
    """Logits over the vocabulary. The weight may be shared with an embedding (Press & Wolf 2017).

    On a GPU, half-precision weights give float32 logits outside training: in 8 bits, the best pieces of a
    step could not be told apart. `silent` pieces have probability 0."""

    bias: Tensor | None

    def __init__(self, weight: nn.Parameter, bias: bool = False, silent: Sequence[int] = ()) -> None:
        super().__init__()
        self.weight = weight
        values = torch.zeros(len(weight))
        values[list(silent)] = SILENCE
        if bias:
            self.bias = nn.Parameter(values)
        else:
            self.register_buffer("bias", values if silent else None, persistent=False)

    def forward(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        weight = self.weight
        if weight.is_cuda and hidden.dim() == 2 and not torch.is_grad_enabled() and _is_half(hidden, weight):
            scores = torch.mm(hidden, weight.t(), out_dtype=torch.float32)
            return scores if self.bias is None else scores + self.bias
        return linear(hidden, weight, self.bias, self)

    def among(self, pieces: Int[Tensor, "C"]) -> SelectedRows:
        """The logits of some pieces alone; their rows are copied once."""
        return SelectedRows(self, self.bias, pieces)


def _is_half(hidden: Tensor, weight: Tensor) -> bool:
    return hidden.dtype == weight.dtype and weight.dtype in (torch.bfloat16, torch.float16)


def embedding_weight(size: int, dim: int) -> nn.Parameter:
    """Normal with variance 1/D: embeddings scaled by √D have unit variance, and so have tied logits."""
    return nn.Parameter(torch.empty(size, dim).normal_(std=dim**-0.5))
