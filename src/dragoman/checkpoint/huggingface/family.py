"""What a family of published models has to say: its configuration and its names of weights, both ways.

    config.json ──▶ our config ──▶ config.json                 one function each way, which refuse what they
                                                               cannot say
    our name ──▶ their names                                   one table, read in both directions

A matrix of ours may be several of theirs, one below the other: query, key and value are one product here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from dragoman.errors import UserError, shown

ConfigFields = Mapping[str, Any]
Controls = Literal["decoder", "text", "pair", "none"]
Side = Literal["src", "tgt"]
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
    """The location of one of our tensors in a published file."""

    theirs: tuple[str, ...]
    rows: Side | None = None
    """Whether it has one row per piece of this vocabulary."""
    skip: int = 0
    """Number of leading rows of the published tensor that are unused; they are written as zeros."""
    flat: bool = False
    """A vector here, and a matrix of one row there."""
    turned: bool = False
    """A matrix that stands on its side there: inputs before outputs."""

    def read(self, tensors: Mapping[str, Tensor]) -> Tensor:
        parts = [tensors[name] for name in self.theirs]
        for name, part in zip(self.theirs, parts, strict=True):
            if not part.is_floating_point():
                raise UserError(f"'{name}' holds no floating-point numbers, but {part.dtype}")
            if part.dim() == 0 or part.dim() > 2 or part.shape[1:] != parts[0].shape[1:]:
                raise UserError(f"'{name}' has the shape {list(part.shape)}, which it has in no such model")
        found = torch.cat(parts)
        found = found.t() if self.turned else found
        return (found.flatten() if self.flat else found)[self.skip :].float().contiguous()

    def write(self, ours: Tensor) -> dict[str, Tensor]:
        if self.turned:
            ours = ours.t()
        if self.skip:
            ours = torch.cat([ours.new_zeros(self.skip, *ours.shape[1:]), ours])
        parts = ours[None].chunk(1) if self.flat else ours.chunk(len(self.theirs))
        return {name: part.contiguous() for name, part in zip(self.theirs, parts, strict=True)}


@dataclass(frozen=True)
class Family:
    """One architecture. A new one is a file like `marian.py`, and a line in `families.py`."""

    model_type: str
    """`model_type` in config.json."""
    architecture: str
    kind: str
    """Our `model.kind`."""
    read_config: Callable[[ConfigFields], dict[str, Any]]
    """The fields of ours that config.json tells; what only the weights tell is added afterwards."""
    write_config: Callable[[Any], dict[str, Any]]
    weights: Callable[[Any, bool], dict[str, Weight]]
    """Weights by our names, for a configuration, with a shared vocabulary or two."""
    copies: Mapping[str, tuple[str, ...]]
    """Names that a file may have beside, or in place of, the one that the table reads."""
    output_bias: str | None = None
    """Their name of a bias on the projection, where they have one."""
    computed: tuple[str, ...] = ()
    """Suffixes of tensor names that a file may contain but that are not needed: tables that are computed."""
    computed_weights: Callable[[Any, int], dict[str, Tensor]] | None = None
    """Our tensors that no file holds, of a model with these options and this id of padding."""
    languages: bool = False
    """Every text begins with the piece of its language."""
    own_projection: str | None = None
    """Their name of a projection that may differ from the embedding."""
    opening: bool = False
    """Every text begins with `bos_token_id`, in the source and in the target."""
    prefix: str = "model."
    """Prefix of weight names that files of the bare model (without head) leave out."""
    controls: Controls = "decoder"
    """Source of our three control pieces: config.json's decoder or text settings; a tokenizer with [CLS] and
    [SEP] around texts; or none, and then they are added."""
    heads: tuple[str, ...] = ()
    """Our modules that a file may lack; they are new then."""
    older: Mapping[str, str] = field(default_factory=dict)
    """Suffixes of names in older files, and their present form."""
    loader: str = "AutoModelForSeq2SeqLM"
    """The class of transformers that opens one with all its weights."""
    encoder_decoder: bool = True
    objective: str = "translate"
    """The objective that its models were trained with."""
    silences: tuple[str, ...] = ("silent_bos",)
    """Our options that exclude a control piece from the softmax, if there are any."""
    relabel: Callable[[Any, dict[str, Tensor]], dict[str, Tensor]] | None = None
    """Conversion of our tensors before they are renamed: a permutation of dimensions for layouts that the
    published family does not have."""


def modules(
    pairs: Mapping[str, tuple[str, ...]], bias: bool = True, turned: bool = False
) -> dict[str, Weight]:
    """Weights, and biases if there are any, of modules by name."""
    kinds = ("weight", "bias") if bias else ("weight",)
    return {
        f"{ours}.{kind}": Weight(
            tuple(f"{name}.{kind}" for name in theirs), turned=turned and kind == "weight"
        )
        for ours, theirs in pairs.items()
        for kind in kinds
    }


def weights_of_layers(
    place: str, layers: int, layer: Callable[[int], Mapping[str, Weight]]
) -> dict[str, Weight]:
    """The weights of all layers at a `place` of ours: `layer` has those of one."""
    return {
        f"{place}.{number}.{ours}": weight
        for number in range(layers)
        for ours, weight in layer(number).items()
    }


def activation_name(activation: str, known: Mapping[str, str] = ACTIVATIONS) -> str:
    found = [theirs for theirs, ours in known.items() if ours == activation]
    if not found:
        raise UserError(f"model.activation: transformers has no {activation} for such a model")
    return found[0]


def read_activation(
    name: object, where: str = "activation_function", known: Mapping[str, str] = ACTIVATIONS
) -> str:
    if not isinstance(name, str) or name not in known:
        raise UserError(f"{where}: expected one of {', '.join(known)}, found {shown(name)}")
    return known[name]


def refuse_others(family: str, fields: ConfigFields, only: Mapping[str, object]) -> None:
    """Options of theirs that have one value here."""
    for name, value in only.items():
        if fields.get(name, value) != value:
            raise UserError(
                f"{name}: {family} is read with {_shown(value)} alone, found {shown(fields[name])}"
            )


def refuse_unless(family: str, config: object, expected: Mapping[str, object]) -> None:
    """A published family is one way of wiring; whatever is wired otherwise has no counterpart."""
    for name, value in expected.items():
        if getattr(config, name) != value:
            raise UserError(
                f"model.{name}: {family} knows only {_shown(value)}, and this model has "
                f"{str(getattr(config, name)).lower()}; it cannot be exported to transformers"
            )


def refuse_unequal(fields: ConfigFields, first: str, second: str) -> None:
    if fields.get(first) != fields.get(second):
        raise UserError(
            f"{second}: encoder and decoder are alike here, and it is {shown(fields.get(second))} while "
            f"{first} is {shown(fields.get(first))}"
        )


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
