"""A prepared corpus on disk: two stores, the tokenizers, and hashes of the training sentences."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from dragoman.config import LEFT_OUT, from_dict
from dragoman.data.drop_reasons import REASONS, reason_of
from dragoman.data.labelled.prepared import PreparedTask
from dragoman.data.seal import (
    JOINT_TOKENIZER,
    META,
    Meta,
    link_store,
    load_tokenizer,
    read_seal,
    refuse_unless_whole,
    unverifiable,
    warn_if_unverifiable,
)
from dragoman.data.store import CheckedNumbers, PairStore
from dragoman.data.store_writer import StoreMeta
from dragoman.data.text_hashes import contains, hash_text, normalise
from dragoman.data.verified_files import DamagedStore, StoreFiles, fact_of
from dragoman.errors import UserError
from dragoman.text.context import ContextConfig
from dragoman.text.tokenizer import Tokenizer

STORE_VERSION = 2
"""Raised with every change to the file format."""
_EARLIER = 1
"""The earlier format version, without hashes."""
_DROPPED = "train.dropped"
TOKENIZER_FILES = ("tokenizer.src.json", "tokenizer.tgt.json")


@dataclass(frozen=True)
class PreparedMeta:
    """The contents of `meta.json`, except for the seal."""

    version: int
    fingerprint: str
    train: StoreMeta
    valid: StoreMeta
    tokenizers: tuple[str, ...]
    """SHA-256 of the joint tokenizer, or of the source and the target tokenizer."""
    dropped: dict[str, int]
    valid_dropped: dict[str, int]
    context: ContextConfig | None = field(default=None, metadata=LEFT_OUT)


class Prepared:
    """An open prepared corpus. Data are verified when they are first used."""

    def __init__(self, files: StoreFiles, meta: PreparedMeta) -> None:
        self.directory = files.directory
        self._files, self._meta = files, meta
        self.fingerprint = meta.fingerprint
        self.src_tokenizer, self.tgt_tokenizer = _load_tokenizers(files, meta)
        pieces = self.src_tokenizer.size, self.tgt_tokenizer.size
        self.train = PairStore(files, "train", meta.train, pieces)
        self.valid = PairStore(files, "valid", meta.valid, pieces)
        self.context = meta.context
        """The number of preceding sentences that each sentence is trained with."""
        self.dropped = dict(meta.dropped)
        """Number of pairs left out of training, by reason."""
        self.valid_dropped = dict(meta.valid_dropped)

    @property
    def valid_targets(self) -> int:
        """Number of target tokens in the validation set."""
        return int(self.valid.tgt_lengths.sum()) + len(self.valid)

    @classmethod
    def open(cls, directory: Path) -> "Prepared":
        """Open a prepared corpus. A damaged or truncated one is refused with the name of the file."""
        found = cls.of(*read_seal(directory))
        warn_if_unverifiable(found._files)
        return found

    @classmethod
    def open_whole(cls, directory: Path) -> "Prepared":
        """Open with every byte verified. An earlier format without hashes is refused."""
        found = cls.of(*read_seal(directory))
        refuse_unless_whole(found._files)
        return found

    @classmethod
    def of(cls, plain: Meta, files: StoreFiles) -> "Prepared":
        version = plain.get("version")
        if version != (STORE_VERSION if files.verifiable else _EARLIER):
            raise DamagedStore(f"{files.directory}: prepared in format {version}, this is {STORE_VERSION}")
        try:
            meta = from_dict(PreparedMeta, plain, str(files.directory / META))
        except (UserError, RecursionError) as error:
            raise DamagedStore(str(error)) from None
        counts = (*meta.dropped.values(), *meta.valid_dropped.values())
        if len(meta.tokenizers) not in (1, 2) or any(type(count) is not int for count in counts):
            raise DamagedStore(f"{files.directory / META}: damaged: it contradicts itself")
        files.check_sizes()
        return cls(files, meta)

    def check(self) -> None:
        """Read everything and check that the parts are consistent."""
        for store in (self.train, self.valid):
            store.check()
        list(self._dropped_rows())

    def link_into(self, directory: Path) -> "Prepared":
        """The same corpus at `directory`, as hard links if the file system supports them, else as copies.
        Shards in other directories stay there."""
        link_store(self._files, directory)
        linked = Prepared.open(directory)
        if linked.fingerprint != self.fingerprint:
            raise UserError(f"{directory}: holds another corpus already; choose another directory")
        return linked

    def dropped_origins(self, reason: str) -> Iterator[str]:
        """The origins of the pairs that were left out of training for `reason`: `a.en:17`."""
        return (origin for code, origin in self._dropped_rows() if reason_of(code) == reason)

    def _dropped_rows(self) -> Iterator[tuple[int, str]]:
        """The reason and origin of each pair that was left out of training."""
        numbers, names = CheckedNumbers(self._files, _DROPPED, np.int64).whole(), self._meta.train.names
        damaged = DamagedStore(f"{self.directory / _DROPPED}: damaged: its numbers do not fit the corpus")
        if len(numbers) % 3:
            raise damaged
        for corpus, line, code in numbers.reshape(-1, 3):
            if not 0 <= corpus < len(names) or not 1 <= code <= len(REASONS):
                raise damaged
            yield int(code), f"{names[int(corpus)]}:{line}"


def overlap(prepared: Prepared | Path, texts: Sequence[str], side: Literal["src", "tgt"]) -> list[bool]:
    """Whether each text occurs on this side of the training data, up to case, punctuation and spaces."""
    directory = prepared.directory if isinstance(prepared, Prepared) else prepared
    _, files = read_seal(directory)
    seen = CheckedNumbers(files, f"seen.{side}", np.uint64).whole()
    hashes = np.fromiter((hash_text(normalise(text)) for text in texts), dtype=np.uint64, count=len(texts))
    return contains(seen, hashes).tolist()


def verify_prepared(directory: Path) -> list[str]:
    """What is wrong with prepared data, one sentence each; empty if every byte is as it was written. A store
    of an earlier version is reported as impossible to verify."""
    found = [fact_of(error) for error in damages(directory)]
    if not found and not read_seal(directory)[1].verifiable:
        found.append(unverifiable(directory))
    return found


def damages(directory: Path) -> list[UserError]:
    """The errors in prepared data. A store of an earlier version is checked as far as possible."""
    try:
        plain, files = read_seal(directory)
        found = list(files.findings())
        if not found:
            opened = (PreparedTask if "labelled" in plain else Prepared).of(plain, files)
            if not files.verifiable:
                opened.check()
        return found
    except UserError as error:
        return [error]


def mend(directory: Path, twin: Path) -> None:
    """Verify the data of a run. Damaged data are replaced by their `twin`, the same data in the cache, if
    that is whole. Otherwise an error is raised."""
    found = damages(directory)
    if not found:
        return
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    if not all(isinstance(error, DamagedStore) for error in found):
        raise found[0]
    if not twin.is_dir():
        raise DamagedStore(f"{fact_of(found[0])}{more}, and {twin.parent} does not have these data any more")
    if verify_prepared(twin):
        raise DamagedStore(f"{fact_of(found[0])}{more}, and the same data in {twin} are damaged too")
    link_store(read_seal(twin)[1], directory, replace_existing=True)
    told = f"{fact_of(found[0])}{more}; replaced by the same data of {twin}, which are whole"
    logging.getLogger("dragoman").warning("%s", told)


def _load_tokenizers(files: StoreFiles, meta: PreparedMeta) -> tuple[Tokenizer, Tokenizer]:
    names = (JOINT_TOKENIZER,) if len(meta.tokenizers) == 1 else TOKENIZER_FILES
    loaded = [load_tokenizer(files, name) for name in names]
    for name, tokenizer, expected in zip(names, loaded, meta.tokenizers, strict=True):
        if tokenizer.sha256 != expected:
            raise DamagedStore(
                f"{files.directory / name}: not the tokenizer of this corpus (SHA-256 differs)"
            )
    return loaded[0], loaded[-1]
