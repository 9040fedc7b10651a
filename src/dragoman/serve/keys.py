"""Keys of clients, from a file with one a line; blank lines, and lines that begin with #, are skipped."""

import hashlib
import hmac
from collections.abc import Iterable
from pathlib import Path

from dragoman.errors import UserError

SHORTEST = 8
_LARGEST_FILE = 1 << 20


class Keys:
    """Only hashes are held. Every one is compared, so the time tells nothing about the keys."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._hashes = [_hash(key) for key in keys]

    @classmethod
    def load(cls, path: Path) -> "Keys":
        try:
            data = path.read_bytes() if path.stat().st_size <= _LARGEST_FILE else None
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror})") from None
        if data is None:
            raise UserError(f"{path}: more than {_LARGEST_FILE} bytes are too many for a file of keys")
        try:
            lines = data.decode("ascii").splitlines()
        except UnicodeDecodeError:
            raise UserError(f"{path}: keys are of ASCII characters, one a line") from None
        keys = {number: line.strip() for number, line in enumerate(lines, 1)}
        keys = {number: key for number, key in keys.items() if key and not key.startswith("#")}
        for number, key in keys.items():
            if len(key) < SHORTEST or " " in key:
                raise UserError(f"{path}:{number}: a key has at least {SHORTEST} characters and no space")
        if not keys:
            raise UserError(f"{path}: there is no key in it; write one a line")
        return cls(keys.values())

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        given = _hash(key)
        return bool(sum(hmac.compare_digest(given, known) for known in self._hashes))


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
