"""What a family of published models has to say: its configuration and its names of weights, both ways.

    config.json ──▶ TransformerConfig ──▶ config.json          one function each way, which refuse what they
                                                               cannot say
    our name ──▶ their names                                   one table, read in both directions

A matrix of ours may be several of theirs, one below the other: query, key and value are one product here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from dragoman.errors import UserError
from dragoman.models.transformer import TransformerConfig

Fields = Mapping[str, Any]
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
"""Theirs to ours; the first name of each is the one that is written."""


@dataclass(frozen=True)
class Weight:
    """Where one tensor of ours is in a published file."""

    theirs: tuple[str, ...]
    rows: Literal["src", "tgt"] | None = None
    """It has a row for every piece of this vocabulary."""
    skip: int = 0
    """Rows that theirs has in front and nobody reads; they are written as zeros."""
    flat: bool = False
    """A vector here, and a matrix of one row there."""

    def read(self, tensors: Mapping[str, Tensor]) -> Tensor:
        found = torch.cat([tensors[name] for name in self.theirs])
        return (found.flatten() if self.flat else found)[self.skip :].float().contiguous()

    def write(self, ours: Tensor) -> dict[str, Tensor]:
        if self.skip:
            ours = torch.cat([ours.new_zeros(self.skip, *ours.shape[1:]), ours])
        parts = ours[None].chunk(1) if self.flat else ours.chunk(len(self.theirs))
        return {name: part.contiguous() for name, part in zip(self.theirs, parts, strict=True)}


@dataclass(frozen=True)
class Family:
    """One architecture. A new one is a file like `marian.py`, and a line in `__init__.py`."""

    model_type: str
    """As config.json has it."""
    architecture: str
    read_config: Callable[[Fields], dict[str, Any]]
    """The fields of ours that config.json tells; what only the weights tell is added afterwards."""
    write_config: Callable[[TransformerConfig], dict[str, Any]]
    weights: Callable[[TransformerConfig, bool], dict[str, Weight]]
    """By our name, of a model with these options; with one vocabulary for both sides or two."""
    output_bias: str | None
    """Their name of a bias on the projection, where they have one."""
    copies: Mapping[str, tuple[str, ...]]
    """Names that a file may have beside, or in place of, the one that the table reads."""
    computed: tuple[str, ...] = ()
    """Names of what a file may hold and nobody needs: tables that are computed."""
    own_projection: str | None = None
    """Their name of a projection that may differ from the embedding."""
    opening: bool = False
    """Every text begins with `bos_token_id`, in the source and in the target."""


def modules(pairs: Mapping[str, tuple[str, ...]], bias: bool = True) -> dict[str, Weight]:
    """Weight, and bias where there is one, of modules by their names."""
    kinds = ("weight", "bias") if bias else ("weight",)
    return {
        f"{ours}.{kind}": Weight(tuple(f"{name}.{kind}" for name in theirs))
        for ours, theirs in pairs.items()
        for kind in kinds
    }


def activation_name(config: TransformerConfig) -> str:
    found = [theirs for theirs, ours in ACTIVATIONS.items() if ours == config.activation]
    if not found:
        raise UserError(f"model.activation: transformers has no {config.activation} for such a model")
    return found[0]


def read_activation(name: object) -> Any:
    if name not in ACTIVATIONS:
        raise UserError(f"activation_function: expected one of {', '.join(ACTIVATIONS)}, found {name!r}")
    return ACTIVATIONS[str(name)]


def refuse_unless(family: str, config: TransformerConfig, expected: Mapping[str, object]) -> None:
    """A published family is one way of wiring; whatever is wired otherwise has no counterpart."""
    for field, value in expected.items():
        if getattr(config, field) != value:
            shown = str(value).lower() if isinstance(value, bool) else value
            raise UserError(
                f"model.{field}: {family} knows only {shown}, and this model has "
                f"{str(getattr(config, field)).lower()}; it cannot be exported to transformers"
            )


def refuse_unequal(fields: Fields, first: str, second: str) -> None:
    if fields.get(first) != fields.get(second):
        raise UserError(
            f"{second}: encoder and decoder are alike here, and it is {fields.get(second)} while {first} is "
            f"{fields.get(first)}"
        )
