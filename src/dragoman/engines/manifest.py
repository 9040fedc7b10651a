"""The directory of an exported model: all that it takes to translate, and the hash of every file.

export.json            what this is, how to search, and SHA-256 of each file below
model.bin config.json  the weights and what CTranslate2 has to know of them
*_vocabulary.json      CTranslate2's names of the pieces: their ids, written as numbers
vmap.txt               the shortlist, where there is one
tokenizer*.json        our tokenizer, or that of the source and that of the target
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.config import from_dict, to_dict
from dragoman.decode.search.config import SearchConfig
from dragoman.errors import UserError
from dragoman.files import hash_file

MANIFEST = "export.json"
FORMAT = "dragoman export"
VERSION = 1


@dataclass(frozen=True)
class Export:
    """`export.json`."""

    engine: str
    quantization: str
    positions: int | None
    """Rows of the table of positions; None where a model has no such limit."""
    shortlist: bool
    src_lang: str
    tgt_lang: str
    tokenizers: tuple[str, ...]
    """One file, or the source's and the target's."""
    attention_when_read: bool | None = None
    """The attention that the model shows belongs to the word that was read, or to the one that is predicted
    (`decode/alignment/attention.py`); None in exports from before one was chosen."""
    search: SearchConfig = field(default_factory=SearchConfig)
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 by name."""


def is_export(directory: Path) -> bool:
    return (directory / MANIFEST).is_file()


def serialise(export: Export) -> bytes:
    content = {"format": FORMAT, "version": VERSION, **to_dict(export)}
    return _dump(content | {"checksum": hashlib.sha256(_dump(content)).hexdigest()})


def read_export(directory: Path) -> Export:
    """Read the manifest and check every file; what is missing or changed is refused by name."""
    path = directory / MANIFEST
    export = _read(path)
    for name, expected in export.files.items():
        file = directory / name
        try:
            found = hash_file(file)
        except OSError as error:
            raise UserError(f"{file}: this file of the export cannot be read ({error.strerror})") from None
        if found != expected:
            raise UserError(f"{file}: changed: its SHA-256 is not the one in {MANIFEST}; export again")
    return export


def _read(path: Path) -> Export:
    try:
        content: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise UserError(f"{path}: damaged: it is not valid JSON; export again") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UserError(f"{path}: damaged: it does not say that its format is '{FORMAT}'; export again")
    if content.get("version") != VERSION:
        found = content.get("version")
        raise UserError(f"{path}: written in version {found!r}; this dragoman reads version {VERSION}")
    checksum = content.pop("checksum", None)
    if checksum != hashlib.sha256(_dump(content)).hexdigest():
        raise UserError(f"{path}: damaged: its contents do not match its checksum; export again")
    plain = {name: value for name, value in content.items() if name not in ("format", "version")}
    export = from_dict(Export, plain, str(path))
    names = [*export.files, *export.tokenizers]
    if any(Path(name).name != name for name in names) or not set(export.tokenizers) <= set(export.files):
        raise UserError(f"{path}: damaged: it names files that are not beside it; export again")
    return export


def _dump(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode("utf-8")
