"""A trained model as a directory that runs without torch. `engines/manifest.py` says what lies in it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from dragoman.checkpoint.model import LoadedModel, save_tokenizers, tokenizer_files
from dragoman.config import from_dict
from dragoman.decode.alignment.attention import IdPair, choose
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.shortlist import Shortlist
from dragoman.engines.manifest import MANIFEST, Export, serialise
from dragoman.engines.search import supported
from dragoman.engines.spec import build_spec, refuse_unsupported, rows_needed
from dragoman.errors import UserError
from dragoman.files import explained, hash_file, new_directory, write_new
from dragoman.models import config_class

Quantization = Literal["float32", "int8", "int8_float32", "int16"]
DEFAULT_POSITIONS = 1024
_VMAP = "vmap.txt"


def export_ctranslate2(
    loaded: LoadedModel,
    out: Path,
    *,
    search: SearchConfig,
    languages: tuple[str, str] = ("src", "tgt"),
    quantize: Quantization = "float32",
    positions: int = DEFAULT_POSITIONS,
    shortlist: Shortlist | None = None,
    examples: Sequence[IdPair] = (),
) -> Path:
    """Write the model to `out`, which appears as a whole or not at all. `examples` are pairs of ids to choose
    the attention by that words are aligned with."""
    if quantize not in get_args(Quantization):
        known = ", ".join(get_args(Quantization))
        raise UserError(f"--quantize: expected one of {known}, found '{quantize}'")
    if positions < 1:
        raise UserError(f"--positions: expected a whole number of at least 1, found {positions}")
    described = loaded.state["model"]
    kind = str(described["kind"])
    config = refuse_unsupported(kind, from_dict(config_class(kind), described["config"], "model"))
    supported(search)
    rows = rows_needed(config, positions)
    look = choose(loaded.model, examples)
    assert look is not None  # every decoder of a Transformer looks at its source
    spec = build_spec(loaded.model, config, rows, look.module)
    spec.optimize(quantization=quantize)

    with explained(out), new_directory(out) as directory:
        spec.save(str(directory))
        save_tokenizers(directory, loaded.src_tokenizer, loaded.tgt_tokenizer)
        if shortlist is not None:
            write_new(directory / _VMAP, (shortlist.lines().encode("ascii"),))
        files = {path.name: hash_file(path) for path in sorted(directory.iterdir())}
        export = Export(
            engine="ctranslate2",
            quantization=quantize,
            positions=rows,
            shortlist=shortlist is not None,
            src_lang=languages[0],
            tgt_lang=languages[1],
            tokenizers=tuple(path.name for path in tokenizer_files(directory)),
            attention_when_read=look.when_read,
            search=search,
            files=files,
        )
        write_new(directory / MANIFEST, (serialise(export),))
    return out
