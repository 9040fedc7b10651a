"""Prepared data are found by the fingerprint of what they were made from, and prepared again if damaged.

The fingerprint is the SHA-256 of contents and settings, not of names or dates.
"""

import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dragoman.config import to_dict
from dragoman.data.config import DataConfig, SourceConfig
from dragoman.data.formats import detect_format
from dragoman.data.formats.lines import HashedFile, open_binary
from dragoman.data.scan import StageProgress, refuse_unless_ordinary
from dragoman.data.verified_files import DamagedStore
from dragoman.errors import UserError
from dragoman.files import discard, remove_all_unfinished, try_lock
from dragoman.text.tokenizer import TokenizerConfig

CONTENTS_VERSION = 1
"""Raised with every change to how `prepare` selects or encodes, but not to the file format."""
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Stamp:
    """A file as it was when it was hashed."""

    path: str
    sha256: str
    size: int
    modified: int


def fingerprint(
    data: DataConfig,
    tokenizer: TokenizerConfig,
    seed: int,
    progress: StageProgress,
    given: Sequence[str] = (),
    known: Mapping[str, HashedFile] | None = None,
) -> tuple[str, list[Stamp]]:
    """The fingerprint and the stamps of its files. `given` has the SHA-256 of tokenizers that are not
    trained, `known` the hashes of files that have been read already."""
    sources = (*data.train, *data.valid)
    files = [file for source in sources for file in source.files]
    files += [source.alignment for source in sources if source.alignment is not None]
    stamps = stamp_files(files, progress, known or {})
    hash_of = {stamp.path: stamp.sha256 for stamp in stamps}

    def describe(source: SourceConfig) -> dict[str, Any]:
        fields = to_dict(source) | {
            "files": [hash_of[file] for file in source.files],
            "format": detect_format(source.files) if source.format == "auto" else source.format,
        }
        if source.alignment is None:
            del fields["alignment"]  # keeps the name of data prepared before alignments existed
        else:
            fields["alignment"] = hash_of[source.alignment]
        return fields

    made_from = to_dict(data) | {
        "train": list(map(describe, data.train)),
        "valid": list(map(describe, data.valid)),
        "test": [],
        "tokenizer": to_dict(tokenizer),
        "seed": seed,
        "version": CONTENTS_VERSION,
    }
    if not data.clean.drop_suspects:
        del made_from["clean"]["drop_suspects"]  # keeps the name of data prepared before
    if given:
        made_from["given"] = list(given)
    del made_from["imported"]  # it concerns models only
    del made_from["shards"]  # the pairs are the same wherever they are stored
    if data.directions is None:
        del made_from["temperature"]  # it only affects the order in which the prepared pairs are drawn
    text = json.dumps(made_from, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest(), stamps


def check_unchanged(stamps: Iterable[Stamp]) -> None:
    """Refuse files that have changed since they were hashed."""
    for stamp in stamps:
        status = _status(stamp.path)
        if (status.st_size, status.st_mtime_ns) != (stamp.size, stamp.modified):
            raise UserError(f"{stamp.path}: the file was changed while it was being read; start again")


def stamp_files(
    paths: Sequence[str], progress: StageProgress, known: Mapping[str, HashedFile] | None = None
) -> list[Stamp]:
    """Stamps of the files. Only files whose hash is not known yet are read."""
    known = known or {}
    statuses = {path: _status(path) for path in paths}
    total = sum(status.st_size for path, status in statuses.items() if path not in known)
    done = 0
    stamps = []
    for path, status in statuses.items():
        if path in known:
            stamps.append(Stamp(path, known[path].sha256, known[path].size, known[path].modified))
            continue
        digest = hashlib.sha256()
        with open_binary(path) as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                done += len(chunk)
                progress("hash", done, total)
        stamps.append(Stamp(path, digest.hexdigest(), status.st_size, status.st_mtime_ns))
    return stamps


def _status(path: str) -> os.stat_result:
    """The status of a readable, ordinary file. Raises an error for anything else."""
    refuse_unless_ordinary([path])
    with open_binary(path) as file:
        return os.fstat(file.fileno())


CACHE = ".prepared"
"""Name of the directory of prepared data, beside the runs."""
T = TypeVar("T")
_ATTEMPTS = 3
_EARLIER = (".unfinished-*", ".damaged-*")
"""Leftovers of earlier versions, with a file `lock` in them or older than that file."""
_GRACE_SECONDS = 3600.0


def has_prepared(cache: Path) -> bool:
    """Whether a directory may hold prepared data."""
    return cache.is_dir() and any(
        entry.is_dir() and not entry.name.startswith(".") for entry in cache.iterdir()
    )


def found_or_made(target: Path, open_whole: Callable[[Path], T], make: Callable[[], T]) -> T:
    """Open what is at `target` if it is whole, else make it.

    Any number of processes may do this for one target at the same time. A process that saw the damaged
    directory may delete what another one has just made, so each process tries several times.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        if target.is_dir():
            try:
                return open_whole(target)
            except DamagedStore as error:
                logging.getLogger("dragoman").warning("%s", f"{error.fact}; the data are prepared anew")
                _discard(target)
        try:
            return make()
        except DamagedStore:
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def _discard(target: Path) -> None:
    try:
        discard(target)
    except FileNotFoundError:
        pass  # another process was quicker
    except OSError as error:
        raise UserError(f"{target}: damaged, and it cannot be removed ({error.strerror})") from None


def remove_killed_preparations(directories: Iterable[Path]) -> None:
    """Delete the leftovers of preparations that were killed."""
    for directory in directories:
        remove_all_unfinished(directory)
        with suppress(OSError):
            for work in [work for pattern in _EARLIER for work in directory.glob(pattern)]:
                if _abandoned(work):
                    shutil.rmtree(work, ignore_errors=True)


def _abandoned(work: Path) -> bool:
    try:
        with (work / "lock").open("rb") as lock:
            return try_lock(lock.fileno()) is True
    except OSError:
        return time.time() - work.stat().st_mtime > _GRACE_SECONDS
