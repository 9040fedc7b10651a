"""API keys of clients, from a file with one key per line. Blank lines and lines that begin with # are
skipped."""

import asyncio
import hashlib
import hmac
import stat
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path

from dragoman.errors import UserError

SHORTEST = 16
_LARGEST_FILE = 1 << 20
_MAKE_ONE = "python -c 'import secrets; print(secrets.token_urlsafe())' makes one"


class Keys:
    """Stores only the hashes of keys. A lookup compares all of them, so its time reveals nothing about the
    keys."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._hashes = [_hash(key) for key in keys]

    @classmethod
    def load(cls, path: Path) -> "Keys":
        try:
            with path.open("rb") as file:
                data = file.read(_LARGEST_FILE + 1)
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror})") from None
        if len(data) > _LARGEST_FILE:
            raise UserError(f"{path}: more than {_LARGEST_FILE} bytes are too many for a file of keys")
        try:
            lines = data.decode("ascii").splitlines()
        except UnicodeDecodeError:
            raise UserError(f"{path}: keys are of ASCII characters, one a line") from None
        keys = {number: line.strip() for number, line in enumerate(lines, 1)}
        keys = {number: key for number, key in keys.items() if key and not key.startswith("#")}
        for number, key in keys.items():
            if len(key) < SHORTEST or " " in key:
                told = f"a key has at least {SHORTEST} characters and no space; {_MAKE_ONE}"
                raise UserError(f"{path}:{number}: {told}")
        if not keys:
            raise UserError(f"{path}: there is no key in it; write one a line")
        return cls(keys.values())

    def name_of(self, key: object) -> str | None:
        """A name for the owner of this key that does not reveal it, or None if the key is unknown."""
        return "key " + _hash(str(key)).hex()[:16] if key in self else None

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        given = _hash(key)
        return bool(sum(hmac.compare_digest(given, known) for known in self._hashes))


def exposed(path: Path) -> str | None:
    """A warning if other users of this machine can read or change the file."""
    mode = path.stat().st_mode
    if not mode & (stat.S_IROTH | stat.S_IWOTH | stat.S_IWGRP):
        return None
    return f"{path}: other users of this machine can read or change the keys; chmod 600 {path}"


class Guesses:
    """Delays the answer to wrong keys once an address has sent several. Valid keys are never delayed.

    The delay blocks nothing else and takes no request slot. At most `most` answers wait at once; one more
    releases the oldest.
    """

    FREE = 10
    """Number of wrong keys per address that are answered at once. They are forgotten after `FORGOTTEN_S`."""
    FORGOTTEN_S = 60.0
    DELAY_S = 2.0
    ADDRESSES = 4096

    def __init__(self, most: int) -> None:
        self._most = most
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._waiting: dict[asyncio.Event, None] = {}

    async def wrong(self, address: str) -> None:
        """Called before a wrong key is refused. Returns after the delay."""
        now = asyncio.get_running_loop().time()
        count, since = self._wrong.pop(address, (0, now))
        if now - since > self.FORGOTTEN_S:
            count, since = 0, now
        self._wrong[address] = count + 1, since
        if len(self._wrong) > self.ADDRESSES:
            self._wrong.popitem(last=False)
        if count < self.FREE:
            return
        if len(self._waiting) >= self._most:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.set()
        sent = asyncio.Event()
        self._waiting[sent] = None
        try:
            async with asyncio.timeout(self.DELAY_S):
                await sent.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting.pop(sent, None)


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
