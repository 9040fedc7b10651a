"""The files of a Hugging Face directory: JSON and safetensors, nothing that could run."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from dragoman.errors import UserError

CONFIG, GENERATION = "config.json", "generation_config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
LIBRARY, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
OWN = "dragoman"
"""A folder with our own tokenizer files, and a field of config.json: only our exports have them."""
_LARGEST_JSON = 64 << 20


def read_fields(directory: Path, name: str, optional: bool = False) -> dict[str, Any]:
    """A JSON file that holds named fields."""
    path = directory / name
    if optional and not path.exists():
        return {}
    try:
        if path.stat().st_size > _LARGEST_JSON:
            raise UserError(f"{path}: too large for such a file (limit {_LARGEST_JSON} bytes)")
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{directory}: this is not a Hugging Face model (it has no {name})") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise UserError(f"{path}: not valid JSON") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: expected a mapping of fields")
    return content


def read_tensors(directory: Path, loader: str) -> dict[str, Tensor]:
    """All weights by name, from one file or from several with an index. `loader` opens such a model."""
    if (directory / WEIGHTS).exists():
        return _load(directory / WEIGHTS)
    if (directory / INDEX).exists():
        return _read_shards(directory)
    if any(directory.glob("*.bin")) or any(directory.glob("*.pt")):
        raise UserError(
            f"{directory}: its weights are a pickle, which can run any code when it is opened; if you trust "
            f"it, write them anew with transformers: {loader}.from_pretrained(DIR).save_pretrained(NEW)"
        )
    raise UserError(f"{directory}: there are no weights here (expected {WEIGHTS} or {INDEX})")


def _read_shards(directory: Path) -> dict[str, Tensor]:
    places = read_fields(directory, INDEX).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
        raise UserError(f"{directory / INDEX}: expected a weight_map from tensors to files")
    tensors: dict[str, Tensor] = {}
    for name in sorted(set(places.values())):
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise UserError(f"{directory / INDEX}: '{name}' is not the name of a safetensors file beside it")
        tensors |= _load(directory / name)
    missing = [name for name in places if name not in tensors]
    if missing:
        raise UserError(f"{directory / INDEX}: no file has the tensor '{missing[0]}'")
    return tensors


def _load(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: not a safetensors file ({error})") from None


def one_of(fields: Sequence[dict[str, Any]], name: str) -> Any:
    """What the first of several files says of a field, if any does."""
    return next((own[name] for own in fields if own.get(name) is not None), None)


def no_tokenizer(directory: Path, expected: str) -> UserError:
    return UserError(
        f"{directory}: there is no tokenizer here (expected {expected}); write one with transformers: "
        "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)"
    )
