"""From a Hugging Face directory to a model of ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.checkpoint import refuse_other_names
from dragoman.checkpoint.huggingface.families import FAMILIES
from dragoman.checkpoint.huggingface.family import Family, Fields, Side, Weight
from dragoman.checkpoint.huggingface.files import CONFIG, GENERATION, one_of, read_fields, read_tensors
from dragoman.checkpoint.huggingface.numbers import Numbers, read_numbers
from dragoman.checkpoint.huggingface.tokenizers import read_tokenizers
from dragoman.checkpoint.model import load_into, model_tensors, vocab_of
from dragoman.config import from_dict
from dragoman.errors import UserError
from dragoman.models import Network, build_network, config_class
from dragoman.nn.embedding import SILENCE
from dragoman.text.options import BOS_ID
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Imported:
    kind: str
    config: Any
    model: Network
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    search: dict[str, Any]
    """What the publisher recommends for search, in our fields."""
    new: tuple[str, ...] = ()
    """Modules that the directory has no weights for: they begin at random, every time the same."""
    objective: str = "translate"
    """The way of learning that it was trained by."""


def read_model(directory: Path, prefix: str = "") -> Imported:
    """The model of a Hugging Face directory. `prefix` is put before every source text."""
    fields, generation = read_fields(directory, CONFIG), read_fields(directory, GENERATION, optional=True)
    family = _family(directory, fields)
    tensors = _with_full_names(family, read_tensors(directory, family.loader))
    try:
        plain = family.read_config(fields)
    except KeyError as error:
        raise UserError(f"{directory / CONFIG}: the field {error} is missing") from None
    except UserError as error:
        raise UserError(f"{directory / CONFIG}: {error}") from None
    numbers = read_numbers(family, directory, (fields, generation))
    shared = fields.get("share_encoder_decoder_embeddings", True)
    plain |= _seen_in_weights(family, tensors, numbers)
    config = from_dict(config_class(family.kind), plain, str(directory / CONFIG))
    ours = _our_tensors(directory, family, config, shared, numbers, tensors)
    src, tgt = read_tokenizers(directory, numbers, shared, prefix)
    _refuse_other_sizes(directory, numbers, src, tgt)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = build_network(family.kind, config, vocab_of(src, tgt)).eval()
    fresh = {name: own.clone() for name, own in model_tensors(model).items() if name not in ours}
    new = {name: own for name, own in fresh.items() if name.startswith(family.heads)}
    load_into(model, ours | new, directory)
    modules = tuple(dict.fromkeys(name.rpartition(".")[0] for name in new))
    return Imported(
        family.kind, config, model, src, tgt, _search(generation, fields), modules, family.objective
    )


def _family(directory: Path, fields: Fields) -> Family:
    found = fields.get("model_type")
    if found not in FAMILIES:
        raise UserError(
            f"{directory / CONFIG}: models of the type {found!r} are not known here; known are "
            f"{', '.join(FAMILIES)}"
        )
    return FAMILIES[found]


def _with_full_names(family: Family, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Names of today. A file of the bare model leaves out the prefix that the model with a head has."""
    for old, new in family.older.items():
        tensors = {
            name.removesuffix(old) + new if name.endswith(old) else name: tensor
            for name, tensor in tensors.items()
        }
    main = next(iter(family.copies))
    bare = main.removeprefix(family.prefix)
    if bare != main and main not in tensors and bare in tensors:
        return {f"{family.prefix}{name}": tensor for name, tensor in tensors.items()}
    return tensors


def _seen_in_weights(family: Family, tensors: Mapping[str, Tensor], numbers: Numbers) -> dict[str, Any]:
    """Options that a configuration does not tell reliably."""
    found: dict[str, Any] = {name: getattr(numbers, name) for name in family.silences}
    if family.output_bias is not None and family.output_bias in tensors:
        bias = tensors[family.output_bias].flatten().clone()
        if numbers.silent_bos and numbers.start not in (numbers.pad, numbers.eos):
            bias[numbers.start] = 0  # one of our exports, in which it says that <s> is silent
        found["output_bias"] = bool(bias.any())
    if family.own_projection is not None:
        head, shared = (tensors.get(name) for name in (family.own_projection, next(iter(family.copies))))
        own = head is not None and shared is not None and not torch.equal(head, shared)
        found["tie_embeddings"] = "inputs" if own else True
    return found


def _our_tensors(
    directory: Path,
    family: Family,
    config: object,
    shared: bool,
    numbers: Numbers,
    tensors: dict[str, Tensor],
) -> dict[str, Tensor]:
    table = _without_missing_heads(family, family.weights(config, shared), tensors)
    needed = {name for weight in table.values() for name in weight.theirs}
    tensors = _without_copies(directory, family, needed, tensors)
    if family.output_bias is not None and family.output_bias not in needed:
        tensors.pop(family.output_bias, None)  # it is zero, or says only what silent_bos says
    tensors = {name: tensor for name, tensor in tensors.items() if not name.endswith(family.computed)}
    expected = {name: tensors.get(name, torch.empty(0)) for name in needed}
    refuse_other_names(directory, tensors, expected)
    ours = {}
    for name, weight in table.items():
        ours[name] = weight.read(tensors)
        if weight.rows is not None:
            ours[name] = _reordered(directory, weight.theirs[0], ours[name], numbers.order(weight.rows))
    if "projection.bias" in ours and numbers.silent_bos:
        ours["projection.bias"][BOS_ID] = SILENCE
    return ours


def _without_missing_heads(
    family: Family, table: dict[str, Weight], tensors: Mapping[str, Tensor]
) -> dict[str, Weight]:
    """A head of which a file has nothing is left out; of one that it has a part of, the rest is missing."""
    absent = [
        head
        for head in family.heads
        if not any(
            name in tensors
            for ours, weight in table.items()
            if ours.startswith(head)
            for name in weight.theirs
        )
    ]
    return {name: weight for name, weight in table.items() if not name.startswith(tuple(absent))}


def _reordered(directory: Path, name: str, rows: Tensor, order: list[int]) -> Tensor:
    if len(rows) <= max(order):
        raise UserError(f"{directory}: '{name}' has {len(rows)} rows, and config.json says {max(order) + 1}")
    return rows[torch.tensor(order)]


def _without_copies(
    directory: Path, family: Family, needed: set[str], tensors: dict[str, Tensor]
) -> dict[str, Tensor]:
    """One of each group of tensors that are the same; a copy that is not the same is never passed over."""
    kept = dict(tensors)
    for main, copies in family.copies.items():
        if main not in needed:
            continue
        others = [name for name in copies if name in kept and name not in needed]
        if main not in kept and others:
            kept[main] = kept[others[0]]
        for name in others:
            if not torch.equal(kept[name], kept[main]):
                raise UserError(
                    f"{directory}: '{name}' is not the same as '{main}', as it is in {family.model_type}"
                )
            del kept[name]
    return kept


def _refuse_other_sizes(directory: Path, numbers: Numbers, src: Tokenizer, tgt: Tokenizer) -> None:
    sides: dict[Side, Tokenizer] = {"src": src, "tgt": tgt}
    for side, tokenizer in sides.items():
        rows = len(numbers.order(side))
        if tokenizer.size != rows:
            raise UserError(
                f"{directory}: the {side} tokenizer has {tokenizer.size} pieces, and the model {rows}"
            )


def _search(generation: Fields, fields: Fields) -> dict[str, Any]:
    """Beam and length normalisation: transformers divides by a power of the length, as ours does."""
    beam, power = (one_of((dict(generation), dict(fields)), name) for name in ("num_beams", "length_penalty"))
    found = {"beam": beam} if isinstance(beam, int) and beam > 1 else {}
    return found | ({"alpha": float(power)} if isinstance(power, int | float) and 0 <= power < 10 else {})
