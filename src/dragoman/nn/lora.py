"""LoRA (Hu et al. 2022, section 4.1): a frozen matrix, and beside it two low-rank matrices that are trained.

    x ─┬─ W ──────────────── + ─▶      h = W x + (α / r) · B A x
       └─ A (r × in) ─ B (out × r) ─┘

B begins at zero, so the model is unchanged at first. After training the pair is folded into the matrix,
W + (α / r) · B A.
"""

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.errors import UserError
from dragoman.nn.linear import Linear
from dragoman.shapes import Float, Tensor

_LOW, _HIGH = "low", "high"


class LoraLinear(Linear):
    """A linear layer with a low-rank pair. It takes the weights of the layer that it replaces."""

    def __init__(self, plain: Linear, rank: int, alpha: float) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = plain.in_features, plain.out_features
        self.weight, self.bias = plain.weight, plain.bias
        self.low = nn.Parameter(plain.weight.new_empty(rank, plain.in_features))
        self.high = nn.Parameter(plain.weight.new_zeros(plain.out_features, rank))
        nn.init.normal_(self.low, std=plain.in_features**-0.5)
        self.scale = alpha / rank

    def forward(self, input: Float[Tensor, "*B D"]) -> Float[Tensor, "*B F"]:
        return super().forward(input) + F.linear(F.linear(input, self.low), self.high) * self.scale

    def folded(self) -> Linear:
        """The pair folded into the matrix."""
        plain = Linear(self.in_features, self.out_features, self.bias is not None, device="meta")
        plain.weight, plain.bias = self.weight, self.bias
        with torch.no_grad():
            plain.weight += (self.high @ self.low) * self.scale
        return plain


def add_pairs(model: nn.Module, rank: int, alpha: float, targets: Sequence[str]) -> None:
    """Add pairs to all linear layers of these names."""
    modules = model.named_modules()
    linears = {name: each for name, each in modules if isinstance(each, Linear) and each.takes_pairs}
    known = dict.fromkeys(name.rpartition(".")[2] for name in linears)
    for target in targets:
        if target not in known:
            raise UserError(
                f"transfer.lora.targets: this model has no linear layer '{target}'; it has {', '.join(known)}"
            )
    for name, module in linears.items():
        if name.rpartition(".")[2] in targets:
            _replace(model, name, LoraLinear(module, rank, alpha))


def fold(model: nn.Module) -> None:
    """Fold every pair into its matrix."""
    pairs = {name: module for name, module in model.named_modules() if isinstance(module, LoraLinear)}
    for name, module in pairs.items():
        _replace(model, name, module.folded())


def folded_tensors(tensors: Mapping[str, Tensor], rank: int, alpha: float) -> dict[str, Tensor]:
    """Fold the low-rank matrices in the weights of a checkpoint."""
    names = [name.removesuffix(f".{_LOW}") for name in tensors if name.endswith(f".{_LOW}")]
    for name in names:
        _refuse_other_shapes(tensors, name, rank)
    made = {
        f"{name}.weight": tensors[f"{name}.weight"]
        + (tensors[f"{name}.{_HIGH}"] @ tensors[f"{name}.{_LOW}"]) * (alpha / rank)
        for name in names
    }
    pairs = {f"{name}.{part}" for name in names for part in (_LOW, _HIGH)}
    return {name: made.get(name, tensor) for name, tensor in tensors.items() if name not in pairs}


def _refuse_other_shapes(tensors: Mapping[str, Tensor], name: str, rank: int) -> None:
    """A pair has this rank, and its product the shape of the matrix."""
    found = [tensors.get(f"{name}.{part}") for part in (_LOW, _HIGH, "weight")]
    shapes = [() if part is None else tuple(part.shape) for part in found]
    if len(shapes[2]) != 2 or shapes[:2] != [(rank, shapes[2][1]), (shapes[2][0], rank)]:
        raise UserError(f"'{name}': its pair of rank {rank} has not the shapes that its matrix needs")


def pair_names(model: nn.Module) -> list[str]:
    """The names of all parameters of pairs."""
    return [
        f"{name}.{part}"
        for name, module in model.named_modules()
        if isinstance(module, LoraLinear)
        for part in (_LOW, _HIGH)
    ]


def _replace(model: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, own = name.rpartition(".")
    setattr(model.get_submodule(parent), own, module)
