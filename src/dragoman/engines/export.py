"""Export of a trained model as a directory that runs without torch; its layout is in
`engines/manifest.py`."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from dragoman.checkpoint.model import LoadedModel
from dragoman.config import from_dict
from dragoman.data.directions import Directions
from dragoman.decode.alignment.attention import Look, SequencePair, best_look
from dragoman.decode.confidence import Calibration
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.shortlist import Shortlist
from dragoman.engines.manifest import MANIFEST, Export, manifest_bytes
from dragoman.engines.search import supported
from dragoman.engines.spec import build_spec, piece_names, refuse_unsupported, rows_needed
from dragoman.errors import UserError
from dragoman.files import explained, hash_file, new_directory, write_new
from dragoman.models import config_class
from dragoman.text.context import ContextConfig
from dragoman.text.sentencepiece_model import sentencepiece_model
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizer_json import exported_json

Quantization = Literal["float32", "int8", "int8_float32", "int16"]
DEFAULT_POSITIONS = 1024
_MOST_POSITIONS = 1 << 20
_VMAP = "vmap.txt"
_OWN_TOKENIZER = "dragoman_tokenizer.json"


class ModelSpec(NamedTuple):
    """A model as CTranslate2 saves it."""

    spec: Any
    rows: int | None
    """Rows of the table of positions."""
    look: Look
    """The attention for word alignment."""
    names: tuple[list[str], list[str]]
    """Names of the pieces of source and target."""


def check_positions(positions: int) -> None:
    """A table with a row for each is written."""
    if not 1 <= positions <= _MOST_POSITIONS:
        raise UserError(
            f"--positions: expected a whole number from 1 to {_MOST_POSITIONS:,}, found {positions:,}"
        )


def model_spec(
    loaded: LoadedModel,
    quantize: Quantization,
    positions: int,
    examples: Sequence[SequencePair] = (),
    silent: Sequence[int] = (),
) -> ModelSpec:
    """`silent` pieces get no probability."""
    if quantize not in get_args(Quantization):
        known = ", ".join(get_args(Quantization))
        raise UserError(f"--quantize: expected one of {known}, found '{quantize}'")
    check_positions(positions)
    described = loaded.state["model"]
    kind = str(described["kind"])
    config = refuse_unsupported(kind, from_dict(config_class(kind), described["config"], "model"))
    rows = rows_needed(config, positions)
    look = best_look(loaded.model, examples)
    assert look is not None  # every Transformer decoder has cross-attention
    names = piece_names(loaded.src_tokenizer), piece_names(loaded.tgt_tokenizer)
    spec = build_spec(loaded.model, config, rows, names, look.module, silent)
    spec.optimize(quantization=quantize)
    return ModelSpec(spec, rows, look, names)


def export_ctranslate2(
    loaded: LoadedModel,
    out: Path,
    *,
    search: SearchConfig,
    languages: tuple[str, str] = ("src", "tgt"),
    quantize: Quantization = "float32",
    positions: int = DEFAULT_POSITIONS,
    shortlist: Shortlist | None = None,
    examples: Sequence[SequencePair] = (),
    directions: Directions | None = None,
    calibration: Calibration | None = None,
    context: ContextConfig | None = None,
) -> Path:
    """Write the model to `out`, which appears as a whole or not at all. `examples` are pairs of ids to choose
    the attention by that words are aligned with; `directions` those of a model of several languages;
    `calibration` that of its confidences; `context` the sentences before that it was trained with."""
    supported(search)
    made = model_spec(loaded, quantize, positions, examples)
    spec, rows, look, names = made.spec, made.rows, made.look, made.names

    with explained(out), new_directory(out) as directory:
        spec.save(str(directory))
        tokenizers = write_tokenizers(directory, loaded.src_tokenizer, loaded.tgt_tokenizer)
        if shortlist is not None:
            write_new(directory / _VMAP, (shortlist.lines(*names).encode("utf-8"),))
        files = {path.name: hash_file(path) for path in sorted(directory.iterdir())}
        export = Export(
            engine="ctranslate2",
            quantization=quantize,
            positions=rows,
            shortlist=shortlist is not None,
            src_lang=languages[0],
            tgt_lang=languages[1],
            tokenizers=tokenizers,
            attention_when_read=look.when_read,
            search=search,
            files=files,
            directions=directions,
            calibration=calibration,
            context=context,
        )
        write_new(directory / MANIFEST, (manifest_bytes(export),))
    return out


def write_tokenizers(directory: Path, src: Tokenizer, tgt: Tokenizer) -> tuple[str, ...]:
    """Write our tokenizer files and return their names; also files for other libraries, where possible."""
    joint = src.sha256 == tgt.sha256
    sides = {"": src} if joint else {"source_": src, "target_": tgt}
    for side, tokenizer in sides.items():
        tokenizer.save(directory / f"{side}{_OWN_TOKENIZER}")
        for name, made in _for_others(tokenizer):
            write_new(directory / f"{side}{name}", (made,))
    return tuple(f"{side}{_OWN_TOKENIZER}" for side in sides)


def _for_others(tokenizer: Tokenizer) -> Iterator[tuple[str, bytes]]:
    """Files for the tokenizers library and for SentencePiece, if they can represent the tokenizer."""
    with suppress(UserError):
        library = json.dumps(exported_json(tokenizer), ensure_ascii=False, indent=2)
        yield "tokenizer.json", f"{library}\n".encode()
    with suppress(UserError):
        yield "sentencepiece.model", sentencepiece_model(tokenizer)
