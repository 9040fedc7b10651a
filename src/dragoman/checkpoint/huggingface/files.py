"""The files of a Hugging Face directory: JSON and safetensors, nothing that could run.

Our own exports have a folder `dragoman` with our tokenizer files and a manifest: size and SHA-256 of every
file of the export. It is verified before anything is read. Directories of others have none.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from dragoman.checkpoint.files import changes, load_tensors, read_listing, serialise
from dragoman.errors import UserError, shown
from dragoman.files import Written, hash_file, write_new
from dragoman.plain import MOST_JSON_VALUES, read_json

CONFIG, GENERATION = "config.json", "generation_config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
LIBRARY, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
OWN = "dragoman"
"""A folder with our own tokenizer files, and a field of config.json: only our exports have them."""
MANIFEST = f"{OWN}/manifest.json"
NOT_VERIFIED = f"its files could not be verified, since it has no {MANIFEST} with their hashes"
_SMALL = (1 << 20, MOST_JSON_VALUES)
_LARGE = (64 << 20, 8_000_000)
"""Bytes and values of a JSON file: of one with options, and of one with a vocabulary."""
_TYPE_BY_FIELD = {"merges": "BPE", "max_input_chars_per_word": "WordPiece", "unk_id": "Unigram"}
_MOST_SHARDS = 1000
_EVALUATION = "evaluation"
_DOCUMENTATION = ("README", "LICENSE", "NOTICE")


def write_manifest(directory: Path) -> None:
    """List all files that are in the directory of an export now."""
    files = {
        name: Written((directory / name).stat().st_size, hash_file(directory / name))
        for name in _files_in(directory)
    }
    write_new(directory / MANIFEST, (serialise(files),))


def has_manifest(directory: Path) -> bool:
    return os.path.lexists(directory / MANIFEST)


def verify_directory(directory: Path) -> list[str]:
    """Problems with the files, one sentence each; empty if all are intact. For a directory without a
    manifest: `NOT_VERIFIED`."""
    path = directory / MANIFEST
    try:
        files = read_listing(path)
    except FileNotFoundError:
        return [f"{directory}: {NOT_VERIFIED}"]
    except OSError as error:
        return [f"{path}: cannot be read ({error.strerror or error})"]
    except UserError as error:
        return [str(error)]
    others = sorted(name for name in _files_in(directory) if name not in files)
    return [*changes(directory, files), *(f"{directory / name}: not in {MANIFEST}" for name in others)]


def refuse_changed(directory: Path) -> None:
    """Refuse an export of ours whose files are not as they were written."""
    found = verify_directory(directory)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise UserError(
            f"{found[0]}{more}; export again, or, if it was changed on purpose, delete {MANIFEST}"
        )


def _files_in(directory: Path) -> Iterator[str]:
    """The names of all files but the manifest, hidden ones, documentation, which others may add, and what
    `dragoman evaluate` has kept."""
    for parent, folders, names in os.walk(directory):
        folders[:] = [folder for folder in folders if not folder.startswith(".") and folder != _EVALUATION]
        for name in names:
            below = (Path(parent) / name).relative_to(directory).as_posix()
            documentation = name.startswith((".", *_DOCUMENTATION)) or name.endswith(".md")
            if below != MANIFEST and not documentation:
                yield below


def is_there(path: Path) -> bool:
    """Whether there is anything of this name, also what cannot be read as a file."""
    return os.path.lexists(path)


def read_json_fields(directory: Path, name: str, optional: bool = False) -> dict[str, Any]:
    """A JSON file that holds named fields."""
    path = directory / name
    limit, values = _SMALL if name in (CONFIG, GENERATION) else _LARGE
    if optional and not is_there(path):
        return {}
    try:
        content = read_json(path, limit, values)
    except FileNotFoundError:
        raise UserError(f"{directory}: this is not a Hugging Face model (it has no {name})") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: expected a mapping of fields")
    return content


def read_library(directory: Path) -> dict[str, Any]:
    """tokenizer.json. The oldest ones do not say of which type their model is; its fields do."""
    library = read_json_fields(directory, LIBRARY)
    model = library.get("model")
    if isinstance(model, dict) and "type" not in model:
        known = (kind for name, kind in _TYPE_BY_FIELD.items() if name in model)
        library["model"] = {"type": next(known, None), **model}
    return library


def read_tensors(directory: Path, loader: str) -> dict[str, Tensor]:
    """All weights by name, from one file or from several with an index. `loader` opens such a model."""
    if is_there(directory / WEIGHTS):
        return _load(directory / WEIGHTS)
    if is_there(directory / INDEX):
        return _read_shards(directory)
    if any(directory.glob("*.bin")) or any(directory.glob("*.pt")):
        raise UserError(
            f"{directory}: its weights are a pickle, which can run any code when it is opened; if you trust "
            f"it, write them anew with transformers: {loader}.from_pretrained(DIR).save_pretrained(NEW)"
        )
    raise UserError(f"{directory}: there are no weights here (expected {WEIGHTS} or {INDEX})")


def _read_shards(directory: Path) -> dict[str, Tensor]:
    path = directory / INDEX
    places = read_json_fields(directory, INDEX).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
        raise UserError(f"{path}: expected a weight_map from tensors to files")
    names = sorted(set(places.values()))
    if len(names) > _MOST_SHARDS:
        raise UserError(f"{path}: it names {len(names):,} files, and {_MOST_SHARDS:,} are allowed")
    tensors: dict[str, Tensor] = {}
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors") or "\0" in name:
            raise UserError(f"{path}: {shown(name)} is not the name of a safetensors file beside it")
        for tensor, content in _load(directory / name).items():
            if places.get(tensor) != name:
                raise UserError(
                    f"{directory / name}: it has the tensor {shown(tensor)}, and the index does not say so"
                )
            tensors[tensor] = content
    missing = [name for name in places if name not in tensors]
    if missing:
        raise UserError(f"{path}: no file has the tensor {shown(missing[0])}")
    return tensors


def _load(path: Path) -> dict[str, Tensor]:
    try:
        return load_tensors(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None


def one_of(fields: Sequence[dict[str, Any]], name: str) -> Any:
    """The value of a field in the first of several files that has it."""
    return next((own[name] for own in fields if own.get(name) is not None), None)


def no_tokenizer(directory: Path, expected: str) -> UserError:
    return UserError(
        f"{directory}: there is no tokenizer here (expected {expected}); write one with transformers: "
        "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)"
    )
