"""`meta.json` and `hashes` of a prepared store: together they verify every byte of it.

    meta.json    the metadata of the store, names and sizes of its files, SHA-256 of `hashes`, and a seal: the
    SHA-256
                 of all that stands before it
    hashes       the SHA-256 of every block of every file, in the order of their names

A store of an earlier version has no `hashes` and no seal. It can be read, but not verified.
"""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.data.verified_files import DIGEST, DamagedStore, Hashed, OutputFiles, StoreFiles
from dragoman.errors import UserError
from dragoman.files import new_directory, open_regular, write_new
from dragoman.text.tokenizer import Tokenizer

META, HASHES, JOINT_TOKENIZER = "meta.json", "hashes", "tokenizer.json"
_SEAL = "seal"
_OWN = ("block", "files", "hashes", _SEAL)
_MOST_BYTES = 16 << 20
"""Largest size of `meta.json`."""
_BLOCKS = [1 << power for power in range(6, 31)]

Meta = dict[str, Any]


def write_seal(directory: Path, plain: Mapping[str, Any], output: OutputFiles) -> None:
    """Write the last two files of a store. `plain` is its metadata."""
    hashed = output.hashed
    table = b"".join(each.digests for each in hashed.values())
    written = write_new(directory / HASHES, [table])
    files = {name: each.size for name, each in hashed.items()}
    own = {"block": output.block, "files": files, "hashes": written.sha256}
    write_new(directory / META, [_rendered({**plain, **own})])


def read_seal(directory: Path) -> tuple[Meta, StoreFiles]:
    """The metadata of a store, and its expected files. The files themselves are not checked."""
    path = directory / META
    raw = _read(path, _MOST_BYTES)
    try:
        plain = json.loads(raw)
    except (ValueError, RecursionError):
        raise _damaged(path) from None
    if not isinstance(plain, dict):
        raise _damaged(path)
    if _SEAL in plain:
        del plain[_SEAL]
        if raw != _rendered(plain):
            raise _damaged(path)
        files = _sealed_files(directory, plain)
    else:
        files = _unsealed_files(directory, plain)
    return {name: value for name, value in plain.items() if name not in _OWN}, files


def load_tokenizer(files: StoreFiles, name: str = JOINT_TOKENIZER) -> Tokenizer:
    """A tokenizer of a store, verified."""
    files.read(name)
    try:
        return Tokenizer.load(files.directory / name)
    except UserError as error:
        raise DamagedStore(str(error)) from None


def refuse_unless_whole(files: StoreFiles) -> None:
    """Read every byte. Raises an error at the first damage, or if the store has no hashes."""
    if not files.verifiable:
        raise DamagedStore(unverifiable(files.directory))
    for error in files.findings():
        raise error


def warn_if_unverifiable(files: StoreFiles) -> None:
    if not files.verifiable:
        logging.getLogger("dragoman").warning("%s", unverifiable(files.directory))


def unverifiable(directory: Path) -> str:
    return f"{directory}: prepared by an earlier version, without hashes of all files: it cannot be verified"


def link_store(files: StoreFiles, directory: Path, replace_existing: bool = False) -> None:
    """The same files in `directory`, as hard links if the file system supports them, else as copies. An
    existing directory is kept unless it is to be replaced. Shards in other directories stay there."""
    if directory.is_dir() and not replace_existing:
        return
    names = [META, *([HASHES] if files.verifiable else []), *files.hashed]
    try:
        with new_directory(directory, not replace_existing, replace_existing) as result:
            for name in names:
                _link_or_copy(files.directory / name, result / name)
    except OSError as error:
        raise UserError(f"{directory}: cannot hold the prepared data ({error.strerror or error})") from None


def _link_or_copy(source: Path, target: Path) -> None:
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _rendered(plain: Mapping[str, Any]) -> bytes:
    seal = hashlib.sha256(json.dumps(plain).encode("ascii")).hexdigest()
    return json.dumps({**plain, _SEAL: seal}, indent=1).encode("ascii")


def _sealed_files(directory: Path, plain: Meta) -> StoreFiles:
    path, block = directory / HASHES, plain.get("block")
    sizes = _sizes(directory, plain)
    if block not in _BLOCKS or any(not isinstance(size, int) for size in sizes.values()):
        raise _damaged(directory / META)
    counts = {name: -(-size // block) for name, size in sizes.items()}
    expected = DIGEST * sum(counts.values())
    table = _read(path, expected)
    if len(table) != expected or hashlib.sha256(table).hexdigest() != plain.get("hashes"):
        raise _damaged(path)
    hashed, at = {}, 0
    for name, count in counts.items():
        end = at + DIGEST * count
        hashed[name] = Hashed(sizes[name], table[at:end])
        at = end
    return StoreFiles(directory, hashed, block)


def _unsealed_files(directory: Path, plain: Meta) -> StoreFiles:
    """The files of a store of an earlier version, which has only sizes, or (labelled examples) one SHA-256
    per file."""
    found = _sizes(directory, plain)
    if all(isinstance(value, int) for value in found.values()):
        return StoreFiles(
            directory, {name: Hashed(size, b"") for name, size in found.items()}, verifiable=False
        )
    hashed = {}
    for name, value in found.items():
        try:
            size, digest = (directory / name).stat().st_size, bytes.fromhex(value)
        except (OSError, ValueError, TypeError):
            raise DamagedStore(f"{directory / name}: damaged or missing") from None
        if len(digest) != DIGEST or (not size and digest != hashlib.sha256().digest()):
            raise _damaged(directory / name)
        hashed[name] = Hashed(size, digest)
    largest = max(each.size for each in hashed.values())
    return StoreFiles(directory, hashed, 1 << max(6, largest.bit_length()), verifiable=False)


def _sizes(directory: Path, plain: Meta) -> dict[str, Any]:
    """The table of files. Its names must be plain file names."""
    files = plain.get("files")
    if not isinstance(files, dict) or not files:
        raise _damaged(directory / META)
    for name, value in files.items():
        plain_name = name and "\0" not in name and Path(name).name == name and name not in (META, HASHES)
        if not plain_name or isinstance(value, bool) or (isinstance(value, int) and not 0 <= value < 1 << 60):
            raise _damaged(directory / META)
    return files


def _read(path: Path, most: int) -> bytes:
    """The contents of a file of at most `most` bytes."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise _damaged(path)
            return file.read(size)
    except (FileNotFoundError, NotADirectoryError):
        if path.name == META:
            raise DamagedStore(f"{path.parent}: no prepared corpus here ({META} is missing)") from None
        raise DamagedStore(f"{path}: damaged: the file is missing") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except DamagedStore:
        raise
    except UserError as error:  # it is not a regular file
        raise DamagedStore(str(error)) from None


def _damaged(path: Path) -> DamagedStore:
    return DamagedStore(f"{path}: damaged: it is not what was written")
