"""Hostile recipes, configurations, tokenizers, corpora and documents."""

import gzip
import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dragoman.runs.directory import CONFIG, MANIFEST
from fault_attacks import Attack, published, written

_ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
_YAML = {
    "aliases in an unknown field": _ALIASES,
    "aliases in seed": _ALIASES.replace("a11:", "seed:"),
    "aliases in model": _ALIASES.replace("a11: &a11 [", "model: &a11 {kind: [").replace(
        "*a10]\n", "*a10]}\n"
    ),
    "deep nesting": "model: " + "[" * 20_000,
    "deep mappings": "model: " + "{a: " * 5_000,
    "a tag that names code": "model: !!python/object/apply:os.system ['echo']\n",
    "merge of itself": "a: &a\n  <<: *a\n",
    "long number": f"seed: {'9' * 100_000}\n",
    "long key": f"? {'k' * 200_000}\n: 1\n",
    "date": "seed: 2001-01-01\n",
    "binary": "seed: !!binary aGk=\n",
    "set": "seed: !!set {a, b}\n",
}


def forge_config(directory: Path, text: str) -> None:
    """A run with another configuration, with a matching hash."""
    run = directory / "runs" / "t"
    (run / CONFIG).write_text((run / CONFIG).read_text() + text)
    manifest = json.loads((run / MANIFEST).read_text())
    manifest.pop("seal", None)
    manifest["files"][CONFIG] = [hashlib.sha256((run / CONFIG).read_bytes()).hexdigest()]
    (run / MANIFEST).write_text(json.dumps(manifest, indent=1))


def yaml_attacks() -> Iterator[Attack]:
    recipe = "data: {train: [{files: [a.en, a.de]}]}\ntrain: {max_updates: 1}\n"
    for what, text in _YAML.items():
        yield Attack("recipe", what, written("x.yaml", (recipe + text).encode()),
                     ("train", "x.yaml", "--out", "runs/h", "--dry-run", "-q"))  # fmt: skip
        yield Attack("run", f"config.yaml: {what}", lambda d, text=text: forge_config(d, text),
                     ("translate", "runs/t", "a cat", "--device", "cpu"))  # fmt: skip
    for what, text in (("deep nesting", "model=" + "[" * 20_000), ("aliases", "model={a: &a [1], b: *a}")):
        yield Attack("recipe", f"field: {what}", lambda _d: None,
                     ("train", "a.en", "a.de", text, "--out", "runs/h", "--dry-run", "-q"))  # fmt: skip


def _library(**changes: Any) -> Callable[[Path], None]:
    """A published tokenizer with other parts; ours beside it is removed, so that this one is read."""

    def change(directory: Path) -> None:
        shutil.rmtree(directory / "dragoman")
        path = directory / "tokenizer.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return published(change)


def tokenizer_attacks() -> Iterator[Attack]:
    pattern = {"Regex": "(a+)+$"}
    split = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
    allowed = {"type": "NFC"}
    grow = [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 20}] * 6
    flags = dict.fromkeys(("special", "single_word", "lstrip", "rstrip", "normalized"), False)
    tokens = [{"id": n, "content": f"<{n}>", **flags} for n in range(100_000)]
    sequence: dict[str, Any] = {"type": "Sequence"}
    charsmap = {"type": "Precompiled", "precompiled_charsmap": "AAAAAAAA/////w=="}
    parts: dict[str, dict[str, Any]] = {
        "pattern under another name": {
            "pre_tokenizer": sequence | {"normalizers": [allowed], "pretokenizers": [split]}
        },
        "pattern": {"pre_tokenizer": split},
        "pattern in a sequence": {"pre_tokenizer": sequence | {"pretokenizers": [split]}},
        "pattern in a normalizer": {"normalizer": {"type": "Replace", "pattern": pattern, "content": ""}},
        "growing text": {"normalizer": sequence | {"normalizers": grow}},
        "two lists": {"normalizer": sequence | {"pretokenizers": [allowed], "normalizers": grow}},
        "damaged charsmap": {"normalizer": charsmap},
        "empty charsmap": {"normalizer": charsmap | {"precompiled_charsmap": ""}},
        "deep sequence": {"normalizer": _nested(allowed, 300)},
        "no model": {"model": None},
        "model of numbers": {"model": [1, 2, 3]},
        "very many added tokens": {"added_tokens": tokens},
        "ids of 10^12": {"added_tokens": [{"id": 10**12, "content": "x", **flags}]},
    }
    for what, changes in parts.items():
        yield Attack("tokenizer", what, _library(**changes), ("import", "hostile", "--out", "runs/h"))
    for what, data in {
        "deep": b'{"a":' * 50_000,
        "huge number": b'{"version": ' + b"9" * 200_000 + b"}",
        "list": b"[]",
        "pieces of numbers": b'{"format": "dragoman tokenizer", "version": 1, "pieces": [1, 2]}',
    }.items():
        yield Attack("tokenizer", f"ours: {what}", written("x.json", data), ("tokenize", "x.json", "a cat"))


def _nested(inner: Any, depth: int) -> Any:
    for _ in range(depth):
        inner = {"type": "Sequence", "normalizers": [inner]}
    return inner


def _parquet(directory: Path) -> None:
    """One text of a megabyte in a dictionary, and 6,000 rows that are it."""
    import pyarrow
    import pyarrow.parquet

    values = pyarrow.array(["x" * (1 << 20)])
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 6000, pyarrow.int32()), values)
    table = pyarrow.table({"src": column, "tgt": pyarrow.array([f"{n}" for n in range(6000)])})
    pyarrow.parquet.write_table(table, directory / "x.parquet")


def _zip_bomb(directory: Path) -> None:
    with zipfile.ZipFile(directory / "x.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for side in ("en", "de"):
            archive.writestr(f"x.en-de.{side}", (b"a" * 1023 + b"\n") * (100 << 10))


def _traversal(directory: Path) -> None:
    with zipfile.ZipFile(directory / "x.zip", "w") as archive:
        for side in ("en", "de"):
            archive.writestr(f"../../x.en-de.{side}", "a\n")


def _gzip_bomb(directory: Path) -> None:
    for side in ("en", "de"):
        with gzip.open(directory / f"x.{side}.gz", "wb", 9) as file:
            for _ in range(200):
                file.write(bytes(b"a" * (1 << 20)))


_LAUGHS = "<!DOCTYPE x [<!ENTITY a0 'ha'>" + "".join(
    f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 12)
) + "]>"  # fmt: skip
_XML = {
    "laughs": f"<?xml version='1.0'?>{_LAUGHS}<BODY>&a11;</BODY>",
    "external": "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><BODY>&a;</BODY>",
    "deep": "<?xml version='1.0'?><BODY>" + "<a>" * 200_000 + "</BODY>",
    "long tag": "<?xml version='1.0'?><BODY " + "a" * 20_000_000 + "='b'></BODY>",
    "many attributes": "<?xml version='1.0'?><BODY "
    + " ".join(f"a{n}=''" for n in range(300_000))
    + "></BODY>",
    "encoding": "<?xml version='1.0' encoding='UTF-7'?><BODY/>",
}


def corpus_attacks() -> Iterator[Attack]:
    yield Attack(
        "corpus", "Parquet dictionary", _parquet, ("corpus", "x.parquet", "--src", "src", "--tgt", "tgt")
    )
    yield Attack("corpus", "zip bomb", _zip_bomb, ("corpus", "x.zip"))
    yield Attack("corpus", "zip with a path upwards", _traversal, ("corpus", "x.zip"))
    yield Attack("corpus", "gzip bomb", _gzip_bomb, ("corpus", "x.en.gz", "x.de.gz"))
    yield Attack("corpus", "line of 70 MiB", written("x.en", b"a" * (70 << 20)), ("corpus", "x.en", "a.de"))
    for what, text in _XML.items():
        for body, name, arguments in (
            ("tmx", "x.tmx", ("corpus", "x.tmx")),
            ("xliff", "x.xliff", ("translate", "runs/t", "x.xliff", "-o", "y.xliff", "--device", "cpu")),
        ):
            yield Attack(
                "corpus", f"{body}: {what}", written(name, text.replace("BODY", body).encode()), arguments
            )
    for what, data in {
        "bold": b"***bold** " * 16_000,
        "brackets": b"[" * 50_000,
        "links": b"[a](" * 20_000,
        "quotes": b"> " * 5_000 + b"a\n",
        "backticks": b"`" * 50_000 + b"a",
    }.items():
        yield Attack("document", f"Markdown: {what}", written("x.md", data),
                     ("translate", "ct2", "x.md", "-o", "y.md", "--beam", "1"))  # fmt: skip
