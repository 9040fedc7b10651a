"""Prepared stores of every kind, all that can be read from one, and ways in which disks damage them."""

import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dragoman.data.config import DataConfig, ShardConfig, SourceConfig
from dragoman.data.corpus import overlap, prepare
from dragoman.data.drop_reasons import REASONS
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.prepared import PreparedTask, prepare_task
from dragoman.data.prepared import Prepared
from dragoman.data.seal import HASHES, META, _rendered
from dragoman.files import hash_file
from dragoman.text.tokenizer import TokenizerConfig

CHARS = TokenizerConfig(kind="char", vocab_size=400)
KINDS = ("pairs", "shards", "text", "labelled")
WORDS = "house tree river stone cloud winter letter garden"


def write_corpus(root: Path) -> None:
    """What the stores are prepared from."""
    words = WORDS.split()
    rows = [
        " ".join(words[(number * 5 + place * 3) % 8] for place in range(1 + number % 9))
        for number in range(150)
    ]
    root.mkdir(parents=True, exist_ok=True)
    lines = {
        "a.tsv": [f"{row} {n}\t{'yes' if n % 3 else 'no'}" for n, row in enumerate(rows)],
        "a.en": ["" if n % 7 == 3 else f"{row} {n}" for n, row in enumerate(rows)],
        "a.de": [f"{n} {row[::-1]}" for n, row in enumerate(rows)],
        "a.links": ["" if n % 7 == 3 else "0-0" for n in range(len(rows))],
    }
    for name, each in lines.items():
        (root / name).write_text("".join(f"{line}\n" for line in each))


def make_store(kind: str, root: Path) -> Path:
    """A small prepared store in `root/cache`; shards lie in `root/disk`."""
    if not (root / "a.en").exists():
        write_corpus(root)
    cache, tsv, en, de, links = (root / name for name in ("cache", "a.tsv", "a.en", "a.de", "a.links"))
    if kind == "labelled":
        data = DataConfig((SourceConfig((str(tsv),)),), valid_size=10)
        task = TaskConfig(kind="classify", labels=("no", "yes"))
        return prepare_task(data, task, CHARS, seed=1, cache=cache, progress=lambda *_: None).directory
    if kind == "text":
        data = DataConfig((SourceConfig((str(en),), format="text"),), valid_size=10)
        return prepare(data, CHARS, seed=1, cache=cache).directory
    source = SourceConfig((str(en), str(de)), alignment=str(links))
    shards = ShardConfig(40, (str(root / "disk"),)) if kind == "shards" else ShardConfig()
    data = DataConfig((source,), valid_size=10, shards=shards)
    return prepare(data, CHARS, seed=1, cache=cache).directory


def read_all(kind: str, directory: Path) -> dict[str, Any]:
    """Everything that a store can be asked for."""
    if kind == "labelled":
        task = PreparedTask.open(directory)
        return {
            "fingerprint": task.fingerprint,
            "tokenizer": task.tgt_tokenizer.sha256,
            "examples": (task.train, task.valid),
            "corpora": task.corpora,
        }
    prepared = Prepared.open(directory)
    return {
        "fingerprint": prepared.fingerprint,
        "tokenizers": (prepared.src_tokenizer.sha256, prepared.tgt_tokenizer.sha256),
        "dropped": (prepared.dropped, prepared.valid_dropped),
        "places": [list(prepared.dropped_origins(reason)) for reason in REASONS],
        "seen": [overlap(directory, [*WORDS.split(), "house 0", "0 esuoh"], side) for side in ("src", "tgt")],
        **{name: _pairs(store) for name, store in (("train", prepared.train), ("valid", prepared.valid))},
    }


def _pairs(store: Any) -> dict[str, Any]:
    numbers = range(len(store))
    return {
        "corpora": store.corpora,
        "lengths": (store.src_lengths.tolist(), store.tgt_lengths.tolist()),
        "lines": store.lines.tolist(),
        "origins": [store.origin(n) for n in numbers],
        "ids": [(store.src(n).tolist(), store.tgt(n).tolist()) for n in numbers],
        "begins": [store.tgt_begin(n) for n in (*numbers, len(store))],
        "links": [store.links(n).tolist() for n in numbers] if store.linked else [],
    }


def reseal(directory: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what a store says about itself, and seal it again: as somebody would who means harm."""
    plain = json.loads((directory / META).read_bytes())
    del plain["seal"]
    change(plain)
    (directory / META).write_bytes(_rendered(plain))


def make_earlier(directory: Path) -> None:
    """Turn a store into what the version before hashes would have written."""
    plain = json.loads((directory / META).read_bytes())
    for name in ("seal", "block", "hashes"):
        del plain[name]
    plain["labelled" if "labelled" in plain else "version"] = 1
    if "labelled" in plain:
        plain["files"] = {name: hash_file(directory / name) for name in plain["files"]}
    (directory / HASHES).unlink()
    (directory / META).write_text(json.dumps(plain, indent=1, ensure_ascii=False), encoding="utf-8")


def files_of(directory: Path) -> list[Path]:
    """Of a store, with those that lie elsewhere."""
    return sorted(path.resolve() for path in directory.iterdir())


Damage = Callable[[Path, random.Random], None]


def _flip_bit(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def _change_byte(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] = rng.randrange(256)
    path.write_bytes(data)


def _swap_blocks(path: Path, rng: random.Random) -> None:
    data = path.read_bytes()
    count = len(data) // 64
    if count < 2:
        return _flip_bit(path, rng)
    a, b = sorted(rng.sample(range(count), 2))
    a, b = a * 64, b * 64
    path.write_bytes(data[:a] + data[b : b + 64] + data[a + 64 : b] + data[a : a + 64] + data[b + 64 :])
    return None


def _zero_page(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    begin = 4096 * rng.randrange(-(-len(data) // 4096))
    end = min(len(data), begin + 4096)
    data[begin:end] = bytes(end - begin)
    path.write_bytes(data)


def _truncate(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def _extend(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes() + rng.randbytes(rng.choice((1, 2, 4, 8, 64, 4096))))


def _delete(path: Path, rng: random.Random) -> None:  # noqa: ARG001
    path.unlink()


def _become_directory(path: Path, rng: random.Random) -> None:  # noqa: ARG001
    path.unlink()
    path.mkdir()


def _swap_files(path: Path, rng: random.Random) -> None:
    other = rng.choice([each for each in path.parent.iterdir() if each != path and each.is_file()])
    mine, its = path.read_bytes(), other.read_bytes()
    path.write_bytes(its)
    other.write_bytes(mine)


def _edit_json(path: Path, rng: random.Random) -> None:
    """One value in it: gone, of another kind, or far too large."""
    plain = json.loads(path.read_bytes())
    places = list(_places(plain))
    holder, key = rng.choice(places)
    if rng.random() < 0.3:
        del holder[key]
    else:
        found = holder[key]
        values = [
            None,
            True,
            -1,
            0,
            1,
            2,
            2**40,
            10**30,
            1.5,
            1e300,
            "",
            "x",
            "../x",
            "\0",
            [],
            {},
            [[]],
            [1],
        ]
        holder[key] = rng.choice([value for value in values if value != found])
    path.write_text(json.dumps(plain, indent=1, ensure_ascii=False), encoding="utf-8")


def _places(plain: Any) -> Sequence[tuple[Any, Any]]:
    if isinstance(plain, dict):
        return [(plain, key) for key in plain] + [each for value in plain.values() for each in _places(value)]
    if isinstance(plain, list):
        found = [(plain, number) for number in range(len(plain))]
        return found + [each for value in plain for each in _places(value)]
    return []


_ANYWHERE: tuple[Damage, ...] = (
    *(_flip_bit, _flip_bit, _change_byte, _swap_blocks, _zero_page),
    *(_truncate, _extend, _delete, _become_directory, _swap_files),
)


def damage(directory: Path, rng: random.Random) -> str:
    """Damage one file; say which and how."""
    path = rng.choice(files_of(directory))
    ways = (*_ANYWHERE, *[_edit_json] * 6) if path.name == "meta.json" else _ANYWHERE
    if path.stat().st_size == 0:
        ways = (_extend, _delete, _become_directory, _swap_files)
    way = rng.choice(ways)
    way(path, rng)
    return f"{path.name}: {way.__name__}"


def copy_store(root: Path, store: Path, to: Path) -> Path:
    """All of `root`, with shards that point into the copy; returns where the store is in it."""
    shutil.copytree(root, to, symlinks=True)
    copied = to / store.relative_to(root)
    for link in copied.iterdir():
        if link.is_symlink():
            target = to / link.readlink().relative_to(root)
            link.unlink()
            link.symlink_to(target)
    return copied
