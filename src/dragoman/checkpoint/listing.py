"""Manifests: lists of files with sizes and SHA-256, for verifying checkpoints and exports.

A manifest contains its own hash, so that damage to it can be distinguished from damage to a file.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from dragoman.errors import UserError
from dragoman.files import Written, hash_file, read_regular
from dragoman.plain import parse_json

FORMAT = 1
_LARGEST_FILE = 4 << 20
_DEEPEST = 4


class Damaged(UserError):
    """A file or checkpoint is damaged, so an older checkpoint may be used instead.

    One that cannot be read at the moment (no permission, a failing disk or server) is a plain UserError: it
    may be intact, and is not replaced.
    """


def serialise(files: Mapping[str, Written]) -> bytes:
    """The bytes of the list; equal lists give equal bytes."""
    listed = {name: {"size": entry.size, "sha256": entry.sha256} for name, entry in sorted(files.items())}
    seal = sha256(json.dumps(listed).encode()).hexdigest()
    return json.dumps({"format": FORMAT, "files": listed, "seal": seal}, indent=1).encode()


def read_listing(path: Path) -> dict[str, Written]:
    """The list in a file. Raises OSError if it cannot be read."""
    damaged = Damaged(f"{path}: damaged: this is not a manifest")
    try:
        raw = read_regular(path, _LARGEST_FILE)
        data = parse_json(raw)
        files = {name: Written(entry["size"], entry["sha256"]) for name, entry in data["files"].items()}
        written_by = data["format"]
    except (UserError, KeyError, TypeError, AttributeError):
        raise damaged from None
    if type(written_by) is int and written_by > FORMAT and b'"seal"' in raw:
        raise UserError(f"{path}: written in format {written_by}; this version of dragoman reads {FORMAT}")
    if raw != serialise(files) or not all(_is_sound(name, entry) for name, entry in files.items()):
        raise damaged
    return files


def _is_sound(name: str, entry: Written) -> bool:
    """Check that an entry is a path below the directory with a valid size and hash."""
    path = PurePosixPath(name)
    inside = str(path) == name and not path.is_absolute() and ".." not in path.parts and "\0" not in name
    size: Any = entry.size
    return inside and 0 < len(path.parts) <= _DEEPEST and type(size) is int and isinstance(entry.sha256, str)


def changes(directory: Path, files: Mapping[str, Written]) -> Iterator[str]:
    """One sentence for every file that does not match the list."""
    for name, listed in files.items():
        path = directory / name
        try:
            size = path.stat().st_size
            if size != listed.size and path.is_file():
                yield f"{path}: damaged: it has {size:,} bytes, its manifest says {listed.size:,}"
            elif hash_file(path) != listed.sha256:
                yield f"{path}: damaged: its SHA-256 is not the one in its manifest"
        except FileNotFoundError:
            yield f"{path}: missing"
        except OSError as error:
            yield f"{path}: cannot be read ({error.strerror or error})"
        except UserError as error:
            yield str(error)
