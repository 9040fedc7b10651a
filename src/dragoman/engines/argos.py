"""A trained model as a package that Argos Translate and LibreTranslate install: a zip archive.

    NAME/metadata.json          languages and versions
    NAME/README.md              the model card
    NAME/sentencepiece.model    our merges for SentencePiece
    NAME/model/                 CTranslate2, with the names of our pieces

They cut sentences themselves, search with their own settings, and write `_` as a space.
"""

import json
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from dragoman.checkpoint.model import LoadedModel
from dragoman.engines.export import Quantization, model_spec
from dragoman.errors import UserError
from dragoman.files import explained, replacing, scratch_directory
from dragoman.text.sentencepiece_model import sentencepiece_model
from dragoman.text.tokenizer_file import BOS_ID, PAD_ID

SUFFIX = ".argosmodel"
_VERSIONS = {"package_version": "1.0", "argos_version": "1.9"}
_PARTS = ("metadata.json", "sentencepiece.model", "model/model.bin")
_WHEN = (1980, 1, 1, 0, 0, 0)
"""Timestamp of every file in the archive, so that equal models give equal bytes."""


def export_argos(
    loaded: LoadedModel,
    out: Path,
    *,
    languages: tuple[str, str],
    names: tuple[str, str],
    card: str,
    quantize: Quantization = "int8",
    positions: int = 1024,
) -> Path:
    """Write the package, atomically, with the names of the languages."""
    if loaded.src_tokenizer.sha256 != loaded.tgt_tokenizer.sha256:
        raise UserError("tokenizer.joint: a package of Argos has one vocabulary, and this model has two")
    pieces = sentencepiece_model(loaded.src_tokenizer)
    spec = model_spec(loaded, quantize, positions, silent=(PAD_ID, BOS_ID)).spec
    spec.config.add_source_eos = True  # Argos does not append </s> itself
    about = {
        **_VERSIONS,
        "type": "translate",
        **{"from_code": languages[0], "from_name": names[0], "to_code": languages[1], "to_name": names[1]},
    }
    name = f"translate-{languages[0]}_{languages[1]}-1_0"
    with explained(out), scratch_directory() as scratch:
        spec.save(str(scratch))
        files = {
            "metadata.json": (json.dumps(about, ensure_ascii=False, indent=4) + "\n").encode("utf-8"),
            "README.md": card.encode("utf-8"),
            "sentencepiece.model": pieces,
        }
        with replacing(out) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, content in files.items():
                archive.writestr(zipfile.ZipInfo(f"{name}/{path}", _WHEN), content, zipfile.ZIP_DEFLATED)
            for file in sorted(scratch.iterdir()):
                entry = zipfile.ZipInfo(f"{name}/model/{file.name}", _WHEN)
                archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return out


def package_problems(path: Path) -> Iterator[str]:
    """What is wrong with a package: a part whose checksum is another, or that is not there."""
    try:
        with zipfile.ZipFile(path) as archive:
            names, damaged = archive.namelist(), archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        yield f"not a zip archive that can be read ({error})"
        return
    if damaged is not None:
        yield f"{damaged}: damaged, its checksum is another"
    for part in _PARTS:
        if not any(name.endswith(f"/{part}") for name in names):
            yield f"{part} is missing"
