"""An ONNX export as a static page that translates in the browser, with transformers.js.

    index.html page.css page.js page.json      the page, its languages and the precision of the weights
    library/                                   transformers.js and ONNX Runtime for browsers, from npm
    model/                                     the export

The page loads nothing from anywhere else: its Content-Security-Policy forbids it. The libraries are copied
from a `node_modules` folder; they are not part of dragoman.
"""

import json
import re
from importlib.resources import files
from pathlib import Path

from dragoman.engines.manifest import read_export
from dragoman.errors import UserError
from dragoman.files import explained, new_directory, write_new

MODEL = "model"
INSTALL = "npm install @huggingface/transformers"
_LIBRARY = "library"
_TRANSFORMERS = Path("@huggingface/transformers/dist/transformers.min.js")
_RUNTIMES = (Path("onnxruntime-web/dist"), Path("@huggingface/transformers/dist"))
_RUNTIME = re.compile(rb"ort-wasm[a-z.-]*\.(?:mjs|wasm)")
_ASSETS = ("index.html", "page.css", "page.js")
_DTYPES = {"float32": "fp32", "int8": "q8"}


def library_files(packages: Path) -> list[Path]:
    """The files of transformers.js and ONNX Runtime that a browser needs, in a folder `node_modules`."""
    main = packages / _TRANSFORMERS
    if not main.is_file():
        raise UserError(
            f"--page {packages}: {_TRANSFORMERS} is not there; install it with  {INSTALL}  and give the "
            "folder node_modules"
        )
    with explained(main, "read"):
        names = {name.decode() for name in _RUNTIME.findall(main.read_bytes())}
    found = [main]
    for name in sorted(names):
        own = next(
            (packages / folder / name for folder in _RUNTIMES if (packages / folder / name).is_file()), None
        )
        if own is not None:
            found.append(own)
    for ending in (".mjs", ".wasm"):
        if not any(path.suffix == ending for path in found):
            raise UserError(
                f"--page {packages}: no ort-wasm…{ending} of onnxruntime-web; install it with  {INSTALL}"
            )
    return found


def write_page(export: Path, libraries: list[Path], out: Path) -> Path:
    """The page with a copy of the export, in a new directory."""
    if not (export / "tokenizer.json").exists():
        raise UserError("--page: the tokenizers library cannot represent this vocabulary, so no browser can")
    told = read_export(export)
    about = {"languages": [told.src_lang, told.tgt_lang], "dtype": _DTYPES[told.quantization]}
    with explained(out), new_directory(out) as directory:
        for name in _ASSETS:
            write_new(directory / name, (files("dragoman.engines").joinpath("page", name).read_bytes(),))
        write_new(directory / "page.json", (json.dumps(about, indent=1).encode(),))
        for folder, paths in ((_LIBRARY, libraries), (MODEL, sorted(export.rglob("*")))):
            for path in paths:
                relative = Path(path.name) if folder == _LIBRARY else path.relative_to(export)
                target = directory / folder / relative
                target.parent.mkdir(parents=True, exist_ok=True)
                if path.is_file():
                    write_new(target, (path.read_bytes(),))
    return out
