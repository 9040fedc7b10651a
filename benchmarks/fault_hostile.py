"""Files that somebody made to do harm: sizes that are not there, bombs, patterns, forged hashes.

Each is given to the command that reads it, with a limit of memory and time. Who makes such a file can make
matching hashes too, so these have them, or have none.
"""

import json
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dragoman import checkpoint
from fault_attacks import Attack, published, written
from fault_commands import run_command
from fault_common import Found
from fault_hostile_texts import corpus_attacks, tokenizer_attacks, yaml_attacks
from fault_hostile_vectors import vector_attacks

LIMIT_SECONDS = 60.0
MEMORY = 10 << 30
"""Address space. The libraries alone map some 4 GB of it."""

_SIZES = (
    *("vocab_size", "d_model", "encoder_layers", "decoder_layers", "encoder_ffn_dim"),
    *("encoder_attention_heads", "max_position_embeddings", "pad_token_id", "bos_token_id"),
)
_LARGE = (10**6, 10**9, 10**12, 10**20, -1, 0, 1.5, "x", None, [1], True)


def _fields(name: str, **changes: Any) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        path = directory / name
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def _published_attacks() -> Iterator[Attack]:
    arguments = ("import", "hostile", "--out", "runs/h")
    for name in _SIZES:
        for value in _LARGE:
            change = published(_fields("config.json", **{name: value}))
            yield Attack("Hugging Face", f"config.json: {name} {value!r}", change, arguments)
    for value in (["marian"], {"a": 1}, None, "x" * 10_000_000):
        change = published(_fields("config.json", model_type=value))
        yield Attack("Hugging Face", f"config.json: model_type {str(value)[:20]}", change, arguments)
    for name in ("num_beams", "length_penalty", "max_length"):
        for value in _LARGE:
            change = published(_fields("generation_config.json", **{name: value}))
            yield Attack("Hugging Face", f"generation_config.json: {name} {value!r}", change, arguments)
    for what, data in _headers().items():
        change = published(written("model.safetensors", data))
        yield Attack("Hugging Face", f"model.safetensors: {what}", change, arguments)
    for name in ("config.json", "model.safetensors", "tokenizer.json", "dragoman/tokenizer.json"):
        yield Attack("Hugging Face", f"{name}: a pipe", published(lambda d, n=name: _pipe(d / n)), arguments)
        change = published(written(name, b"[" * 200_000))
        yield Attack("Hugging Face", f"{name}: deep nesting", change, arguments)


def _headers() -> dict[str, bytes]:
    """safetensors whose header is a lie."""

    def file(header: Any, size: int = 64, length: int | None = None) -> bytes:
        text = json.dumps(header).encode() if not isinstance(header, bytes) else header
        return struct.pack("<Q", len(text) if length is None else length) + text + bytes(size)

    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
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
        "very many names": file({f"{n}": empty for n in range(200_000)}, 0),
    }


def _pipe(path: Path) -> None:
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
    saved = checkpoint.load_checkpoint(root / checkpoint.names(root)[-1])
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


def all_attacks() -> list[Attack]:
    return [
        *_published_attacks(),
        *_state_attacks(),
        *yaml_attacks(),
        *tokenizer_attacks(),
        *corpus_attacks(),
        *vector_attacks(),
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
