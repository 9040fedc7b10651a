"""From a Hugging Face directory to a model of ours."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.checkpoint import refuse_other_names
from dragoman.checkpoint.huggingface.archive import is_archive, read_archive
from dragoman.checkpoint.huggingface.control_ids import ControlIds, read_control_ids
from dragoman.checkpoint.huggingface.families import FAMILIES
from dragoman.checkpoint.huggingface.family import ConfigFields, Family, Side, Weight
from dragoman.checkpoint.huggingface.files import (
    CONFIG,
    GENERATION,
    OWN,
    has_manifest,
    is_there,
    one_of,
    read_json_fields,
    read_tensors,
    refuse_changed,
)
from dragoman.checkpoint.huggingface.start import START, without_beginning
from dragoman.checkpoint.huggingface.tokenizers import read_languages, read_tokenizers
from dragoman.checkpoint.model import load_into, model_tensors, vocab_of
from dragoman.config import from_dict
from dragoman.errors import UserError, shown
from dragoman.models import Network, build_network, config_class
from dragoman.models.base import Vocab
from dragoman.nn.linear import SILENCE
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizer_file import BOS_ID

_WIDEST_BEAM = 1000


@dataclass(frozen=True)
class Imported:
    kind: str
    config: Any
    model: Network
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    search: dict[str, Any]
    """The publisher's recommended search settings, in our fields."""
    new: tuple[str, ...] = ()
    """Modules that the directory has no weights for: they begin at random, every time the same."""
    objective: str = "translate"
    """The way of learning that it was trained by."""
    verified: bool = False
    """The directory has a manifest, and all its files are as they were written."""


def read_model(directory: Path, prefix: str = "", languages: tuple[str, str] = ("src", "tgt")) -> Imported:
    """The model of a Hugging Face directory, or of an archive of Marian. `prefix` is put before every source
    text. A model of several languages translates between two `languages`.

    Sizes come from config.json, and memory is taken for none of them before it is held to a limit and to the
    shapes of the weights that the directory really has.
    """
    verified = has_manifest(directory)
    if verified:
        refuse_changed(directory)
    if is_archive(directory):
        (fields, read), generation = read_archive(directory), {}
        family = _family(fields)
    else:
        fields, generation = (
            read_json_fields(directory, CONFIG),
            read_json_fields(directory, GENERATION, optional=True),
        )
        with _naming(directory / CONFIG):
            family = _family(fields)
        read = read_tensors(directory, family.loader)
    with _naming(directory / CONFIG):
        plain, shared = family.read_config(fields), _is_shared(fields)
        search = _search(generation, fields)
    numbers = read_control_ids(family, directory, (fields, generation))
    if family.languages:
        numbers = replace(numbers, languages=read_languages(directory, languages))
    own = fields.get(OWN)
    with _naming(directory):
        tensors = _with_full_names(family, read)
        if isinstance(own, Mapping) and START in own:
            tensors = without_beginning(directory, tensors, numbers.pad)
        plain |= _seen_in_weights(family, tensors, numbers)
    config = from_dict(config_class(family.kind), plain, str(directory / CONFIG))
    with _naming(directory):
        ours = _our_tensors(family, config, shared, numbers, tensors)
    if OWN in fields and not is_there(directory / OWN):
        raise UserError(f"{directory}: an export of dragoman without its folder {OWN}; copy all of it")
    src, tgt = read_tokenizers(directory, numbers, shared, prefix)
    _refuse_other_sizes(directory, numbers, src, tgt)
    model, new = _built(directory, family, config, vocab_of(src, tgt), ours)
    modules = tuple(dict.fromkeys(name.rpartition(".")[0] for name in new))
    return Imported(family.kind, config, model, src, tgt, search, modules, family.objective, verified)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Prefix errors raised inside with the name of this file."""
    try:
        yield
    except KeyError as error:
        raise UserError(f"{path}: the field {error} is missing") from None
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _built(
    directory: Path, family: Family, config: Any, vocab: Vocab, ours: Mapping[str, Tensor]
) -> tuple[Network, list[str]]:
    """The model, and the names of the weights that are new. Shapes are compared before memory is taken."""
    with torch.device("meta"):
        expected = model_tensors(build_network(family.kind, config, vocab))
    new = [name for name in expected if name not in ours and name.startswith(family.heads)]
    refuse_other_names(directory, {**ours, **{name: expected[name] for name in new}}, expected)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = build_network(family.kind, config, vocab).eval()
    own = model_tensors(model)
    load_into(model, {**ours, **{name: own[name].clone() for name in new}}, directory)
    return model, new


def _is_shared(fields: ConfigFields) -> bool:
    name = "share_encoder_decoder_embeddings"
    found = fields.get(name, True)
    if not isinstance(found, bool):
        raise UserError(f"{name}: expected true or false, found {shown(found)}")
    return found


def _family(fields: ConfigFields) -> Family:
    found = fields.get("model_type")
    if not isinstance(found, str) or found not in FAMILIES:
        raise UserError(
            f"models of the type {shown(found)} are not known here; known are {', '.join(FAMILIES)}"
        )
    return FAMILIES[found]


def _with_full_names(family: Family, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Names of today. A file of the bare model leaves out the prefix that the model with a head has."""
    count = len(tensors)
    for old, new in family.older.items():
        tensors = {
            name.removesuffix(old) + new if name.endswith(old) else name: tensor
            for name, tensor in tensors.items()
        }
    if len(tensors) < count:
        raise UserError("its weights have a tensor under its old name and under its new one")
    main = next(iter(family.copies))
    bare = main.removeprefix(family.prefix)
    if bare != main and main not in tensors and bare in tensors:
        return {f"{family.prefix}{name}": tensor for name, tensor in tensors.items()}
    return tensors


def _seen_in_weights(family: Family, tensors: Mapping[str, Tensor], numbers: ControlIds) -> dict[str, Any]:
    """Options that a configuration does not tell reliably."""
    found: dict[str, Any] = {name: getattr(numbers, name) for name in family.silences}
    if family.output_bias is not None and family.output_bias in tensors:
        bias = tensors[family.output_bias].flatten().clone()
        if len(bias) != numbers.tgt_size:
            raise UserError(
                f"'{family.output_bias}' has {len(bias)} numbers, and config.json says {numbers.tgt_size}"
            )
        if numbers.silent_bos and numbers.start not in (numbers.pad, numbers.eos):
            bias[numbers.start] = 0  # one of our exports, in which it says that <s> is silent
        found["output_bias"] = bool(bias.any())
    if family.own_projection is not None:
        head, shared = (tensors.get(name) for name in (family.own_projection, next(iter(family.copies))))
        own = head is not None and shared is not None and not _are_same(head, shared)
        found["tie_embeddings"] = "inputs" if own else True
    return found


def _our_tensors(
    family: Family,
    config: object,
    shared: bool,
    numbers: ControlIds,
    tensors: dict[str, Tensor],
) -> dict[str, Tensor]:
    table = _without_missing_heads(family, family.weights(config, shared), tensors)
    needed = {name for weight in table.values() for name in weight.theirs}
    tensors = _without_copies(family, needed, tensors)
    if family.output_bias is not None and family.output_bias not in needed:
        tensors.pop(family.output_bias, None)  # it is zero, or says only what silent_bos says
    tensors = {name: tensor for name, tensor in tensors.items() if not name.endswith(family.computed)}
    expected = {name: tensors.get(name, torch.empty(0)) for name in needed}
    refuse_other_names("its weights", tensors, expected)
    ours = {}
    for name, weight in table.items():
        ours[name] = weight.read(tensors)
        if weight.rows is not None:
            ours[name] = _reordered(weight.theirs[0], ours[name], numbers, weight.rows)
    if family.computed_weights is not None:
        ours |= family.computed_weights(config, numbers.pad)
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


def _reordered(name: str, rows: Tensor, numbers: ControlIds, side: Side) -> Tensor:
    size = numbers.src_size if side == "src" else numbers.tgt_size
    if len(rows) != size:
        raise UserError(f"'{name}' has {len(rows)} rows, and config.json says {size}")
    return rows[torch.tensor(numbers.order(side))]


def _are_same(one: Tensor, other: Tensor) -> bool:
    return one.dtype == other.dtype and torch.equal(one, other)


def _without_copies(family: Family, needed: set[str], tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """One of each group of tensors that are the same; a copy that is not the same is never passed over."""
    kept = dict(tensors)
    for main, copies in family.copies.items():
        if main not in needed:
            continue
        others = [name for name in copies if name in kept and name not in needed]
        if main not in kept and others:
            kept[main] = kept[others[0]]
        for name in others:
            if not _are_same(kept[name], kept[main]):
                raise UserError(f"'{name}' is not the same as '{main}', as it is in {family.model_type}")
            del kept[name]
    return kept


def _refuse_other_sizes(directory: Path, numbers: ControlIds, src: Tokenizer, tgt: Tokenizer) -> None:
    sides: dict[Side, Tokenizer] = {"src": src, "tgt": tgt}
    for side, tokenizer in sides.items():
        rows = len(numbers.order(side))
        if tokenizer.size != rows:
            raise UserError(
                f"{directory}: the {side} tokenizer has {tokenizer.size} pieces, and the model {rows}"
            )


def _search(generation: ConfigFields, fields: ConfigFields) -> dict[str, Any]:
    """Beam, length normalisation and stop rule: transformers divides by a power of the length, as ours does.
    It can favour short translations without a limit; that has no counterpart."""
    files = dict(generation), dict(fields)
    beam, power = (one_of(files, name) for name in ("num_beams", "length_penalty"))
    if beam is not None and (type(beam) is not int or not 1 <= beam <= _WIDEST_BEAM):
        raise UserError(f"num_beams: expected a whole number from 1 to {_WIDEST_BEAM}, found {shown(beam)}")
    if power is not None and type(power) not in (int, float):
        raise UserError(f"length_penalty: expected a number, found {shown(power)}")
    found: dict[str, Any] = {"beam": beam} if beam is not None and beam > 1 else {}
    early = one_of(files, "early_stopping")
    if found and (early is True or early == "never"):
        found["stop"] = "complete" if early is True else "bound"
    return found | ({"alpha": float(power)} if power is not None and 0 <= power < 10 else {})
