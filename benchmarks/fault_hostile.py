"""Files that somebody made to do harm: sizes that are not there, bombs, patterns, forged hashes.

Each is given to the command that reads it, with a limit of memory and time. Whoever makes such a file can also
make matching hashes, so these have them, or have none.
"""

import hashlib
import json
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman import checkpoint
from dragoman.train.run import CONFIG, MANIFEST
from fault_commands import run_command
from fault_damage import Found

LIMIT_SECONDS = 60.0
MEMORY = 10 << 30
"""Address space. The libraries alone map some 4 GB of it."""

_LARGE = (10**6, 10**9, 10**12, 10**20, -1, 0, 1.5, "x", None, [1], True)


@dataclass(frozen=True)
class Attack:
    kind: str
    what: str
    make: Callable[[Path], None]
    """In a copy of everything that was made."""
    arguments: tuple[str, ...]


def _published(change: Callable[[Path], None]) -> Callable[[Path], None]:
    """Something done to a Hugging Face directory that has no manifest of ours."""

    def make(directory: Path) -> None:
        target = directory / "hostile"
        shutil.copytree(directory / "hf", target)
        for path in target.rglob("*manifest*.json"):
            path.unlink()
        change(target)

    return make


def _fields(name: str, **changes: Any) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        path = directory / name
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def _published_attacks() -> Iterator[Attack]:
    arguments = ("import", "hostile", "--out", "runs/h")
    for name in ("vocab_size", "d_model", "encoder_layers", "decoder_layers", "encoder_ffn_dim",
                 "encoder_attention_heads", "max_position_embeddings", "pad_token_id", "bos_token_id"):  # fmt: skip
        for value in _LARGE:
            change = _published(_fields("config.json", **{name: value}))
            yield Attack("Hugging Face", f"config.json: {name} {value!r}", change, arguments)
    for value in (["marian"], {"a": 1}, None, "x" * 10_000_000):
        change = _published(_fields("config.json", model_type=value))
        yield Attack("Hugging Face", f"config.json: model_type {str(value)[:20]}", change, arguments)
    for name in ("num_beams", "length_penalty", "max_length"):
        for value in _LARGE:
            change = _published(_fields("generation_config.json", **{name: value}))
            yield Attack("Hugging Face", f"generation_config.json: {name} {value!r}", change, arguments)
    for what, data in _headers().items():
        change = _published(lambda d, data=data: (d / "model.safetensors").write_bytes(data) and None)
        yield Attack("Hugging Face", f"model.safetensors: {what}", change, arguments)
    for name in ("config.json", "model.safetensors", "tokenizer.json", "dragoman/tokenizer.json"):
        yield Attack("Hugging Face", f"{name}: a pipe", _published(lambda d, n=name: _pipe(d / n)), arguments)
        change = _published(lambda d, n=name: (d / n).write_bytes(b"[" * 200_000) and None)
        yield Attack("Hugging Face", f"{name}: deep nesting", change, arguments)


def _headers() -> dict[str, bytes]:
    """safetensors whose header is a lie."""

    def file(header: Any, size: int = 64, length: int | None = None) -> bytes:
        text = json.dumps(header).encode() if not isinstance(header, bytes) else header
        return struct.pack("<Q", len(text) if length is None else length) + text + bytes(size)

    tensor = {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64]}
    return {
        "header longer than the file": file({"a": tensor}, length=1 << 40),
        "header of 2^64": file({"a": tensor}, length=(1 << 64) - 1),
        "shape of 10^12": file({"a": tensor | {"shape": [10**12]}}),
        "shape overflows": file({"a": tensor | {"shape": [1 << 40, 1 << 40]}}),
        "negative": file({"a": tensor | {"shape": [-4, -4]}}),
        "offsets beyond the end": file({"a": tensor | {"data_offsets": [0, 10**12]}}),
        "offsets backwards": file({"a": tensor | {"data_offsets": [64, 0]}}),
        "overlap": file({"a": tensor, "b": tensor}),
        "unknown type": file({"a": tensor | {"dtype": "X9"}}),
        "deep": file(b"[" * 100_000),
        "a million names": file({f"{n}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(200_000)}, 0),
    }  # fmt: skip


def _pipe(path: Path) -> None:
    import os

    path.unlink()
    os.mkfifo(path)


def forge_state(directory: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """A run of which the state says something else, with matching hashes."""
    run = directory / "runs" / "t"
    root = run / "checkpoints"
    (run / "best.json").unlink(missing_ok=True)
    for path in list(root.iterdir()):
        if path.name != checkpoint.names(root)[-1]:
            shutil.rmtree(path)
    saved = checkpoint.load(root / checkpoint.names(root)[-1])
    tensors = {part: saved.read(part) for part in saved.parts}
    state = json.loads(json.dumps(saved.state))
    change(state)
    checkpoint.save(root, saved.name, tensors, state)


def _state_attacks() -> Iterator[Attack]:
    def change(path: tuple[str, ...], value: Any) -> Callable[[Path], None]:
        def edit(state: dict[str, Any]) -> None:
            for name in path[:-1]:
                state = state[name]
            state[path[-1]] = value

        return lambda directory: forge_state(directory, edit)

    arguments = ("translate", "runs/t", "a cat", "--device", "cpu")
    for name in ("model_dim", "num_layers", "ff_dim", "num_heads"):
        for value in _LARGE:
            make = change(("model", "config", name), value)
            yield Attack("run", f"state.json: {name} {value!r}", make, arguments)
    for name in ("src_size", "tgt_size", "pad_id", "eos_id"):
        for value in _LARGE:
            make = change(("model", "vocab", name), value)
            yield Attack("run", f"state.json: {name} {value!r}", make, arguments)
    for path in (("model",), ("model", "kind"), ("weights",), ("progress",), ("model", "tokenizers")):
        for value in (None, [], "x", 10**20, {}):
            make = change(path, value)
            yield Attack("run", f"state.json: {'.'.join(path)} {value!r}", make, arguments)
    for name in ("update", "epoch", "batch", "metrics_bytes", "best"):
        for value in _LARGE:
            yield Attack("run", f"state.json: progress.{name} {value!r}", change(("progress", name), value),
                         ("resume", "runs/t", "-q"))  # fmt: skip


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
    manifest["files"][CONFIG] = [hashlib.sha256((run / CONFIG).read_bytes()).hexdigest()]
    (run / MANIFEST).write_text(json.dumps(manifest, indent=1))


def _yaml_attacks() -> Iterator[Attack]:
    recipe = "data: {train: [{files: [a.en, a.de]}]}\ntrain: {max_updates: 1}\n"
    for what, text in _YAML.items():
        yield Attack("recipe", what, _written("x.yaml", (recipe + text).encode()),
                     ("train", "x.yaml", "--out", "runs/h", "--dry-run", "-q"))  # fmt: skip
        yield Attack("run", f"config.yaml: {what}", lambda d, text=text: forge_config(d, text),
                     ("translate", "runs/t", "a cat", "--device", "cpu"))  # fmt: skip
    for what, text in (("deep nesting", "model=" + "[" * 20_000), ("aliases", "model={a: &a [1], b: *a}")):
        yield Attack("recipe", f"field: {what}", lambda _d: None,
                     ("train", "a.en", "a.de", text, "--out", "runs/h", "--dry-run", "-q"))  # fmt: skip


def _written(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda directory: (directory / name).write_bytes(data) and None


def _library(**changes: Any) -> Callable[[Path], None]:
    """A published tokenizer with other parts; ours beside it is removed, so that this one is read."""

    def change(directory: Path) -> None:
        shutil.rmtree(directory / "dragoman")
        path = directory / "tokenizer.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return _published(change)


def _tokenizer_attacks() -> Iterator[Attack]:
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    allowed = {"type": "NFC"}
    grow = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 20}
    parts: dict[str, dict[str, Any]] = {
        "pattern under another name": {"pre_tokenizer": {"type": "Sequence", "normalizers": [allowed],
                                                         "pretokenizers": [split]}},
        "pattern": {"pre_tokenizer": split},
        "pattern in a sequence": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [split]}},
        "pattern in a normalizer": {"normalizer": {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""}},
        "growing text": {"normalizer": {"type": "Sequence", "normalizers": [grow] * 6}},
        "normalizer with two lists": {"normalizer": {"type": "Sequence", "pretokenizers": [allowed],
                                                     "normalizers": [grow] * 6}},
        "damaged charsmap": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAAAA/////w=="}},
        "empty charsmap": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": ""}},
        "deep sequence": {"normalizer": _nested(allowed, 300)},
        "no model": {"model": None},
        "model of numbers": {"model": [1, 2, 3]},
        "a million added tokens": {"added_tokens": [{"id": n, "content": f"<{n}>", "special": True, "single_word": False,
                                   "lstrip": False, "rstrip": False, "normalized": False} for n in range(100_000)]},
        "ids of 10^12": {"added_tokens": [{"id": 10**12, "content": "x"}]},
    }  # fmt: skip
    for what, changes in parts.items():
        yield Attack("tokenizer", what, _library(**changes), ("import", "hostile", "--out", "runs/h"))
    for what, data in {
        "deep": b'{"a":' * 50_000,
        "huge number": b'{"version": ' + b"9" * 200_000 + b"}",
        "list": b"[]",
        "pieces of numbers": b'{"format": "dragoman tokenizer", "version": 1, "pieces": [1, 2]}',
    }.items():
        yield Attack("tokenizer", f"ours: {what}", _written("x.json", data), ("tokenize", "x.json", "a cat"))


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
            archive.writestr(f"x.en-de.{side}", b"a\n" * (100 << 20))


def _traversal(directory: Path) -> None:
    with zipfile.ZipFile(directory / "x.zip", "w") as archive:
        for side in ("en", "de"):
            archive.writestr(f"../../x.en-de.{side}", "a\n")


def _gzip_bomb(directory: Path) -> None:
    import gzip

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


def _corpus_attacks() -> Iterator[Attack]:
    yield Attack(
        "corpus", "Parquet dictionary", _parquet, ("corpus", "x.parquet", "--src", "src", "--tgt", "tgt")
    )
    yield Attack("corpus", "zip bomb", _zip_bomb, ("corpus", "x.zip"))
    yield Attack("corpus", "zip with a path upwards", _traversal, ("corpus", "x.zip"))
    yield Attack("corpus", "gzip bomb", _gzip_bomb, ("corpus", "x.en.gz", "x.de.gz"))
    yield Attack("corpus", "line of 70 MiB", _written("x.en", b"a" * (70 << 20)), ("corpus", "x.en", "a.de"))
    for what, text in _XML.items():
        for body, name, arguments in (
            ("tmx", "x.tmx", ("corpus", "x.tmx")),
            ("xliff", "x.xliff", ("translate", "runs/t", "x.xliff", "-o", "y.xliff", "--device", "cpu")),
        ):
            yield Attack(
                "corpus", f"{body}: {what}", _written(name, text.replace("BODY", body).encode()), arguments
            )
    for what, data in {
        "bold": b"***bold** " * 16_000,
        "brackets": b"[" * 50_000,
        "links": b"[a](" * 20_000,
        "quotes": b"> " * 5_000 + b"a\n",
        "backticks": b"`" * 50_000 + b"a",
    }.items():
        yield Attack("document", f"Markdown: {what}", _written("x.md", data),
                     ("translate", "ct2", "x.md", "-o", "y.md", "--beam", "1"))  # fmt: skip


def all_attacks() -> list[Attack]:
    return [
        *_published_attacks(),
        *_state_attacks(),
        *_yaml_attacks(),
        *_tokenizer_attacks(),
        *_corpus_attacks(),
    ]


def run_hostile(made: Path, work: Path, every: int, mine: Callable[[str, str, int], bool]) -> Iterator[Found]:
    """Every so manieth attack. `mine` says which are to be tried."""
    for number, attack in enumerate(all_attacks()):
        if number % every or not mine("hostile", attack.kind, number):
            continue
        directory = work / f"hostile-{number}"
        directory.mkdir()
        for name in ("runs/t", "hf", "ct2"):
            shutil.copytree(made / name, directory / name, symlinks=True)
        for name in ("a.en", "a.de"):
            shutil.copyfile(made / name, directory / name)
        attack.make(directory)
        ended = run_command(attack.arguments, directory, memory=MEMORY, limit=LIMIT_SECONDS)
        outcome = ended.fault or ("refused" if ended.status else "harmless")
        shutil.rmtree(directory)
        yield Found("hostile", attack.kind, number, outcome, False, attack.what, ended.output[-1500:])
