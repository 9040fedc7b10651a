"""A prepared corpus on disk: two stores, the tokenizers, and hashes of what training has seen."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from dragoman.config import from_dict, to_dict
from dragoman.data.cache import new_directory
from dragoman.data.clean import reason_of
from dragoman.data.fingerprint import FORMAT_VERSION
from dragoman.data.hashes import contains, map_numbers
from dragoman.data.store import PairStore, StoreMeta
from dragoman.data.text_hash import hash_text, normalise
from dragoman.errors import UserError
from dragoman.text.tokenizer import Tokenizer

META = "meta.json"
JOINT_TOKENIZER = "tokenizer.json"
TOKENIZERS = ("tokenizer.src.json", "tokenizer.tgt.json")


@dataclass(frozen=True)
class PreparedMeta:
    """`meta.json`."""

    version: int
    fingerprint: str
    train: StoreMeta
    valid: StoreMeta
    tokenizers: tuple[str, ...]
    """SHA-256 of the tokenizer, or of that of the source and that of the target."""
    dropped: dict[str, int]
    valid_dropped: dict[str, int]
    files: dict[str, int] = field(default_factory=dict)
    """Bytes of every other file."""


class Prepared:
    """An open prepared corpus."""

    def __init__(self, directory: Path, meta: PreparedMeta) -> None:
        self.directory = directory
        self._meta = meta
        self.fingerprint = meta.fingerprint
        self.src_tokenizer, self.tgt_tokenizer = _load_tokenizers(directory, meta)
        self.train = PairStore(directory, "train", meta.train)
        self.valid = PairStore(directory, "valid", meta.valid)
        self.dropped = dict(meta.dropped)
        """Pairs that are left out of training, by reason."""
        self.valid_dropped = dict(meta.valid_dropped)

    @property
    def valid_targets(self) -> int:
        """Tokens that a validation asks for."""
        return int(self.valid.tgt_lengths.sum()) + len(self.valid)

    @classmethod
    def open(cls, directory: Path) -> "Prepared":
        """Open a prepared corpus; one that is cut or not what it says it is gets refused by name."""
        try:
            plain = json.loads((directory / META).read_bytes())
        except FileNotFoundError:
            raise UserError(f"{directory}: no prepared corpus here ({META} is missing)") from None
        except (OSError, ValueError) as error:
            raise UserError(f"{directory / META}: cannot be read ({error})") from None
        if isinstance(plain, dict) and plain.get("version") != FORMAT_VERSION:
            found = plain.get("version")
            raise UserError(
                f"{directory}: prepared in format {found}, this is {FORMAT_VERSION}; prepare again"
            )
        meta = from_dict(PreparedMeta, plain, str(directory / META))
        for name, size in meta.files.items():
            path = directory / name
            found = path.stat().st_size if path.is_file() else None
            if found != size:
                state = "is missing" if found is None else f"has {found} bytes"
                state += f" ({path.readlink()})" if path.is_symlink() else ""
                raise UserError(f"{path}: expected {size} bytes, the file {state}; prepare again")
        return cls(directory, meta)

    def link_into(self, directory: Path) -> "Prepared":
        """The same corpus at `directory`, by hard links where the file system can, else copied. Shards that
        lie elsewhere stay there."""
        if not directory.exists():
            try:
                with new_directory(directory) as result:
                    for name in (META, *self._meta.files):
                        link_or_copy(self.directory / name, result / name)
            except OSError as error:
                reason = error.strerror or error
                raise UserError(f"{directory}: cannot hold the prepared corpus ({reason})") from None
        linked = Prepared.open(directory)
        if linked.fingerprint != self.fingerprint:
            raise UserError(f"{directory}: holds another corpus already; choose another directory")
        return linked

    def dropped_origins(self, reason: str) -> Iterator[str]:
        """Where the pairs that were left out of training for `reason` stand: `a.en:17`."""
        rows = map_numbers(self.directory / "train.dropped", np.int64).reshape(-1, 3)
        for corpus, line, code in rows:
            if reason_of(int(code)) == reason:
                yield f"{self._meta.train.names[int(corpus)]}:{line}"


def overlap(prepared: Prepared | Path, texts: Sequence[str], side: Literal["src", "tgt"]) -> list[bool]:
    """For each text, whether training has seen it on this side, but for case, punctuation and spaces."""
    directory = prepared.directory if isinstance(prepared, Prepared) else prepared
    path = directory / f"seen.{side}"
    if not path.is_file():
        raise UserError(f"{directory}: no prepared corpus here ({path.name} is missing)")
    seen = map_numbers(path, np.uint64)
    hashes = np.fromiter((hash_text(normalise(text)) for text in texts), dtype=np.uint64, count=len(texts))
    return contains(seen, hashes).tolist()


def write_meta(directory: Path, meta: PreparedMeta, elsewhere: dict[str, int]) -> None:
    """With the bytes of the files in `directory`, and of those that it will point to."""
    sizes = {path.name: path.stat().st_size for path in sorted(directory.iterdir()) if path.name != META}
    plain = to_dict(meta) | {"files": sizes | elsewhere}
    (directory / META).write_text(json.dumps(plain, indent=1, ensure_ascii=False), encoding="utf-8")


def _load_tokenizers(directory: Path, meta: PreparedMeta) -> tuple[Tokenizer, Tokenizer]:
    names = (JOINT_TOKENIZER,) if len(meta.tokenizers) == 1 else TOKENIZERS
    loaded = [Tokenizer.load(directory / name) for name in names]
    for name, tokenizer, expected in zip(names, loaded, meta.tokenizers, strict=True):
        if tokenizer.sha256 != expected:
            raise UserError(
                f"{directory / name}: not the tokenizer of this corpus (SHA-256 differs); prepare again"
            )
    return loaded[0], loaded[-1]


def link_or_copy(source: Path, target: Path) -> None:
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
