"""Files and directories at an address that fsspec knows, with the promise of the disk: whole or not at all.

    s3://bucket/mono.de       a file: one object, there when all of it is
    s3://bucket/run/          a directory: a run, an export, a prepared corpus
      files.json              the names, sizes and SHA-256 of all files; written last, by one request
      blocks/SHA-256          what they are made of, at most 64 MiB each

A block is named by its hash, so it never changes: whoever reads finds the directory as it was at one moment,
and a transfer that was interrupted goes on where it stopped. Every block is compared with its hash when it is
read. One process at a time may write to an address.
"""

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeVar

from dragoman.cluster import require
from dragoman.errors import UserError
from dragoman.files import make_directories, open_regular, remove_all_unfinished, replace_file, replacing

T = TypeVar("T")
_BLOCK = 64 << 20
_FILES, _BLOCKS = "files.json", "blocks"
_ADDRESS = re.compile(r"(?!(?:https?|ftp|data|mailto|ray)://)[a-z][a-z0-9+.-]*://\S+")
_HASH = re.compile(r"[0-9a-f]{64}")
_TRIES, _PAUSE = 4, 0.2
"""A request is repeated so often, with pauses of so many seconds that double."""
mirrors: dict[Path, str] = {}
"""The local copies that this process has, and their addresses."""


def is_address(text: str) -> bool:
    return bool(_ADDRESS.fullmatch(text))


class StoragePlace:
    """What is at an address."""

    def __init__(self, address: str) -> None:
        fsspec = require("fsspec", address)
        self.address = address.rstrip("/")
        try:
            self._system, self._path = fsspec.core.url_to_fs(self.address)
        except (ImportError, ValueError, OSError) as error:
            raise UserError(f"{address}: cannot be used ({error})") from None
        self._on_disk = isinstance(self._system, fsspec.implementations.local.LocalFileSystem)
        """A directory of this machine, where a request is not yet whole or durable by itself."""

    def beside(self, name: str) -> "StoragePlace":
        return StoragePlace(f"{self.address.rpartition('/')[0]}/{name}")

    def is_directory(self) -> bool:
        return self._ask("looked up", self._exists, f"{self._path}/{_FILES}")

    def is_file(self) -> bool:
        return self._ask("looked up", self._exists, self._path)

    def get(self, path: Path) -> None:
        """The file at the address."""

        def copy() -> None:
            size = self._info(self._path)["size"]
            with self._open(self._path) as source, replacing(path) as file:
                while block := source.read(_BLOCK):
                    file.write(block)
                if file.tell() != size:
                    raise OSError(f"{file.tell():,} of {size:,} bytes came")

        make_directories(path.parent)
        self._ask("read", copy)

    def put(self, path: Path) -> None:
        """Write a file there: it appears when all of it has arrived, and is then read back."""

        def copy() -> None:
            self._make_parent(self._path)
            if self._on_disk:
                with path.open("rb") as source, replacing(Path(self._path)) as file:
                    shutil.copyfileobj(source, file, _BLOCK)
            else:
                self._system.put_file(str(path), self._path)

        def digest() -> str:
            with self._open(self._path) as file:
                return _digest_of(iter(lambda: file.read(_BLOCK), b""))

        self._ask("written", copy)
        with path.open("rb") as file:
            if _digest_of(iter(lambda: file.read(_BLOCK), b"")) != self._ask("read", digest):
                raise UserError(
                    f"{self.address}: what was written is not what is there; give the command again"
                )

    def push(self, directory: Path) -> None:
        """Write a directory there, of which only the blocks travel that are not there."""
        if self._on_disk:
            for place in (self._path, f"{self._path}/{_BLOCKS}"):
                remove_all_unfinished(Path(place))
        while True:
            names = _names(directory)
            old = self._files() if self.is_directory() else {}
            there = self._blocks()
            try:
                files = {name: self._push_file(directory / name, there) for name in names}
            except FileNotFoundError:  # deleted meanwhile: a checkpoint that is not kept
                continue
            if set(names) <= set(_names(directory)):
                break
        data = json.dumps({"files": files, "seal": _seal(files)}, indent=1).encode()
        self._write(f"{self._path}/{_FILES}", data)
        used = {block for own in (files, old) for entry in own.values() for block in entry["blocks"]}
        for block in sorted(there - used):  # older than what somebody may be reading
            self._ask("removed", self._system.rm_file, f"{self._path}/{_BLOCKS}/{block}")

    def pull(self, directory: Path) -> None:
        """Make a local directory the same as the one there; only what differs travels."""
        files = self._files()
        for name, entry in files.items():
            self._pull_file(directory / name, entry)
        for name in _names(directory) if directory.is_dir() else []:
            if name not in files:
                (directory / name).unlink()
        mirrors[directory] = self.address

    def remove(self) -> None:
        """Remove a directory: its names first."""
        for path in (f"{self._path}/{_FILES}", f"{self._path}/{_BLOCKS}"):
            if self._ask("looked up", self._exists, path):
                self._ask("removed", self._system.rm, path, recursive=True)

    def _push_file(self, path: Path, there: set[str]) -> dict[str, Any]:
        whole, blocks, size = hashlib.sha256(), [], 0
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                whole.update(block)
                size += len(block)
                blocks.append(hashlib.sha256(block).hexdigest())
                if blocks[-1] not in there:
                    self._write(f"{self._path}/{_BLOCKS}/{blocks[-1]}", block)
                    there.add(blocks[-1])
        return {"size": size, "sha256": whole.hexdigest(), "blocks": blocks}

    def _pull_file(self, path: Path, entry: dict[str, Any]) -> None:
        if path.is_file() and path.stat().st_size == entry["size"]:
            with path.open("rb") as file:
                if _digest_of(iter(lambda: file.read(_BLOCK), b"")) == entry["sha256"]:
                    return
        make_directories(path.parent)
        with replacing(path) as file:
            for block in entry["blocks"]:
                file.write(self._ask("read", self._read_block, block))

    def _read_block(self, block: str) -> bytes:
        data = self._content(f"{self._path}/{_BLOCKS}/{block}")
        if hashlib.sha256(data).hexdigest() != block:
            raise OSError(f"block {block[:12]} is not what its SHA-256 says")
        return data

    def _files(self) -> dict[str, Any]:
        data = self._ask("read", self._content, f"{self._path}/{_FILES}")
        try:
            plain = json.loads(data)
            files = dict(plain["files"])
            good = plain["seal"] == _seal(files) and all(map(_is_safe, files, files.values()))
        except (ValueError, KeyError, TypeError, RecursionError):
            good, files = False, {}
        if not good:
            raise UserError(f"{self.address}/{_FILES}: damaged, or not written by dragoman")
        return files

    def _blocks(self) -> set[str]:
        def listed() -> set[str]:
            self._system.invalidate_cache()
            try:
                found = self._system.ls(f"{self._path}/{_BLOCKS}", detail=False)
            except FileNotFoundError:
                return set()
            return {name for path in found if _HASH.fullmatch(name := path.rpartition("/")[2])}

        return self._ask("read", listed)

    def _write(self, path: str, data: bytes) -> None:
        def write() -> None:
            self._make_parent(path)
            if self._on_disk:
                replace_file(Path(path), data)
            else:
                self._system.pipe_file(path, data)
            if self._info(path)["size"] != len(data):
                raise OSError("a part of it is missing")

        self._ask("written", write)

    def _open(self, path: str) -> BinaryIO:
        return open_regular(Path(path)) if self._on_disk else self._system.open(path, "rb")

    def _content(self, path: str) -> bytes:
        if not self._on_disk:
            return self._system.cat_file(path)
        with open_regular(Path(path)) as file:
            return file.read()

    def _make_parent(self, path: str) -> None:
        """Only file systems with directories need it."""
        parent = path.rpartition("/")[0]
        if self._on_disk:
            make_directories(Path(parent))
        else:
            self._system.makedirs(parent, exist_ok=True)

    def _exists(self, path: str) -> bool:
        self._system.invalidate_cache()
        return self._system.exists(path)

    def _info(self, path: str) -> dict[str, Any]:
        self._system.invalidate_cache()
        return self._system.info(path)

    def _ask(self, done: str, ask: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """A request, repeated where it fails; then one sentence."""
        for attempt in range(_TRIES):
            try:
                return ask(*arguments, **named)
            except (FileNotFoundError, PermissionError, UserError) as error:
                raise UserError(f"{self.address}: cannot be {done} ({_reason(error)})") from None
            except Exception as error:  # the libraries of the storages have errors of their own
                if attempt == _TRIES - 1:
                    raise UserError(f"{self.address}: cannot be {done} ({_reason(error)})") from None
                time.sleep(_PAUSE * 2**attempt)
        raise AssertionError


@contextmanager
def followed(push: Callable[[], None], tell: Callable[[str], None], seconds: float = 60.0) -> Iterator[None]:
    """Inside, what changes is pushed every so often: another machine can go on from there."""
    from threading import Event, Thread

    ended = Event()

    def follow() -> None:
        while not ended.wait(seconds):
            try:
                push()
            except UserError as error:
                tell(f"{error}; it is tried again")

    thread = Thread(target=follow, name="dragoman-storage", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _names(directory: Path) -> list[str]:
    """The files below, without those that are being written. What says that others are there comes first:
    what it speaks of is read later, and can only be more."""
    found = [
        Path(parent, name).relative_to(directory).as_posix()
        for parent, _, names in os.walk(directory, followlinks=True)
        for name in names
    ]
    found = [name for name in found if not any(part.startswith(".") for part in PurePosixPath(name).parts)]
    return sorted(found, key=lambda name: (not name.endswith(".json"), name))


def _is_safe(name: str, entry: dict[str, Any]) -> bool:
    """A name below the directory, and blocks that are hashes."""
    path = PurePosixPath(name)
    inside = bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\\" not in name
    return inside and isinstance(entry["size"], int) and all(map(_HASH.fullmatch, entry["blocks"]))


def _digest_of(blocks: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def _seal(files: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
