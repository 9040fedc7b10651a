"""The directory of an exported model: everything needed to translate, and the hash of every file. This is the
layout for CTranslate2; `engines/onnx_export.py` has the one for ONNX Runtime.

export.json            kind of model, search settings, and SHA-256 of each file below
model.bin config.json  the weights and CTranslate2's configuration
*_vocabulary.json      CTranslate2's names of the pieces (in older exports their ids, written as numbers)
vmap.txt               the shortlist, if there is one
dragoman_tokenizer.json   our tokenizer; source_… and target_… if there are two
tokenizer.json         the same for the tokenizers library (in older exports this is ours)
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.config import LEFT_OUT, from_dict, to_dict
from dragoman.data.directions import Directions, Languages, chosen_languages
from dragoman.decode.confidence import Calibration
from dragoman.decode.search.config import BeamSearch, SearchConfig
from dragoman.errors import UserError, shown
from dragoman.files import hash_file
from dragoman.plain import read_json
from dragoman.text.context import ContextConfig

MANIFEST = "export.json"
FORMAT = "dragoman export"
VERSION = 1
_LARGEST_FILE = 1 << 20
WEIGHTS = "model.bin"
CTRANSLATE2, ONNX = "ctranslate2", "onnx"
"""Names of the engines."""
ONNX_FOLDER = "onnx"
"""Directory of the graphs in an export for ONNX Runtime."""
_NEEDED = {CTRANSLATE2: {WEIGHTS, "config.json"}, ONNX: {"config.json"}}
VOCABULARIES = (("shared_vocabulary.json",) * 2, ("source_vocabulary.json", "target_vocabulary.json"))
"""Vocabulary files of source and target."""
_READ_BY_ENGINE = re.compile(r"model\.bin|config\.json|vmap\.txt|.*vocabulary\.(json|txt)")
"""Files that CTranslate2 reads if they exist."""


@dataclass(frozen=True)
class Export:
    """The content of `export.json`."""

    engine: str
    quantization: str
    positions: int | None
    """Rows of the table of positions; None for models without such a limit."""
    shortlist: bool
    src_lang: str
    tgt_lang: str
    tokenizers: tuple[str, ...]
    """One file, or the source's and the target's."""
    attention_when_read: bool | None = None
    """Whether the exported attention belongs to the word that was read, or to the one that is predicted
    (`decode/alignment/attention.py`); None in old exports."""
    search: SearchConfig = field(default_factory=BeamSearch)
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 by file name."""
    directions: Directions | None = field(default=None, metadata=LEFT_OUT)
    """The directions of a multilingual model."""
    calibration: Calibration | None = field(default=None, metadata=LEFT_OUT)
    """Calibration of confidences, if the run had one at export."""

    context: ContextConfig | None = field(default=None, metadata=LEFT_OUT)
    """How many sentences before it the model was trained with."""

    def chosen_languages(self, to: str | None, source: str | None, zero_shot: bool = False) -> Languages:
        """The direction given by `--to` and `--from`; with a single direction, that one."""
        return chosen_languages(self.directions, (self.src_lang, self.tgt_lang), to, source, zero_shot)

    def refuse_long(self, lengths: Iterable[int], what: str) -> None:
        """Refuse texts (lengths in tokens without `</s>`) for which there are not enough positions."""
        for number, length in enumerate(lengths, 1):
            if self.positions is not None and length >= self.positions:
                raise UserError(
                    f"{what} {number}: {length + 1:,} tokens with </s> are more than the {self.positions:,} "
                    "positions of this export; split it, or export with more --positions"
                )


def is_export(directory: Path) -> bool:
    """Whether a directory claims to be an export; it may still be damaged."""
    return os.path.lexists(directory / MANIFEST)


def manifest_bytes(export: Export) -> bytes:
    content = {"format": FORMAT, "version": VERSION, **to_dict(export)}
    return _dump(content | {"checksum": hashlib.sha256(_dump(content)).hexdigest()})


def read_manifest(directory: Path) -> Export:
    """Read the manifest of an export, without checking its other files."""
    return _read(directory / MANIFEST)


def read_export(directory: Path) -> Export:
    """Read the manifest and verify every file; a missing or changed one is refused by name."""
    export = read_manifest(directory)
    for finding in _changes(directory, export):
        raise UserError(f"{finding}; export again")
    return export


def verify_export(directory: Path) -> list[str]:
    """Problems with the files of an export, one sentence each; empty if all are intact."""
    try:
        export = _read(directory / MANIFEST)
    except UserError as error:
        return [str(error)]
    return list(_changes(directory, export))


def _changes(directory: Path, export: Export) -> Iterator[str]:
    for name, expected in export.files.items():
        file = directory / name
        try:
            if hash_file(file) != expected:
                yield f"{file}: changed: its SHA-256 is not the one in {MANIFEST}"
        except OSError as error:
            yield f"{file}: this file of the export cannot be read ({error.strerror})"
        except UserError as error:
            yield str(error)
    for name in sorted(entry.name for entry in directory.iterdir()):
        read = export.engine == CTRANSLATE2 and _READ_BY_ENGINE.fullmatch(name)
        if read and name not in export.files:
            yield f"{directory / name}: CTranslate2 would read it, and it is not in {MANIFEST}"


def _read(path: Path) -> Export:
    try:
        content = read_json(path, _LARGEST_FILE)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except UserError as error:
        raise UserError(f"{error}; export again") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UserError(f"{path}: damaged: it does not say that its format is '{FORMAT}'; export again")
    if content.get("version") != VERSION:
        found = shown(content.get("version"))
        raise UserError(f"{path}: written in version {found}; this dragoman reads version {VERSION}")
    checksum = content.pop("checksum", None)
    if checksum != hashlib.sha256(_dump(content)).hexdigest():
        raise UserError(f"{path}: damaged: its contents do not match its checksum; export again")
    plain = {name: value for name, value in content.items() if name not in ("format", "version")}
    export = from_dict(Export, plain, str(path))
    if export.engine not in _NEEDED:
        raise UserError(f"{path}: it is for the engine {shown(export.engine)}, which is not known here")
    names = [name.removeprefix(f"{ONNX_FOLDER}/") for name in export.files]
    if any(Path(name).name != name or "\0" in name for name in [*names, *export.tokenizers]):
        raise UserError(f"{path}: damaged: it names files that are not beside it; export again")
    needed = {*_NEEDED[export.engine], *export.tokenizers}
    if not needed <= set(export.files) or not 1 <= len(export.tokenizers) <= 2:
        raise UserError(f"{path}: damaged: it does not name all files of an export; export again")
    return export


def _dump(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode("utf-8")
