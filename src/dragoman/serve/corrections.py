"""Corrections of clients: a translation memory that grows while the server runs, kept in a TMX file.

    request ─▶ one change at a time ─▶ in a thread: check the limits, write the file ─▶ in use

The latest correction of a text counts. If the file cannot be written, the memory and the disk both stay
unchanged. Number, size and age of the corrections are limited.
"""

import asyncio
import errno
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dragoman.errors import UserError
from dragoman.files import replacing
from dragoman.serve.corrections_file import CorrectionUnit, read_units, written
from dragoman.serve.languages import LanguageCodes
from dragoman.serve.limits import Limits
from dragoman.serve.memory import TranslationMemory, same_spaces
from dragoman.serve.refusal import Refusal

Key = tuple[str, str, str]
"""Both languages, and the source with single spaces."""
_OVERHEAD = 256
"""Size in bytes that each correction counts in addition to its texts."""
_NO_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


@dataclass(frozen=True)
class _Change:
    """Units to add or replace, and keys to remove."""

    put: dict[Key, CorrectionUnit]
    removed: frozenset[Key] = frozenset()


class Corrections:
    """The corrections of a server. `now` returns the current time in UTC."""

    def __init__(
        self, limits: Limits, file: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._limits, self._file, self._now = limits, file, now
        self._turn = asyncio.Lock()
        self._units: dict[Key, CorrectionUnit] = {}
        self._memories: dict[LanguageCodes, TranslationMemory] = {}
        if file.exists():
            most = 2 * limits.corrections_bytes + (1 << 20)
            for unit in read_units(file, most):
                self._units.pop(_key(unit), None)  # the last unit of a key counts; it is the newest
                self._units[_key(unit)] = unit
            too_old = self._too_old()
            self._units = {key: unit for key, unit in self._units.items() if key not in too_old}
            try:
                self._check(self._units)
            except Refusal as refusal:
                raise UserError(f"{file}: {refusal.message}") from None
            for unit in self._units.values():
                self._remember(unit)

    @property
    def file(self) -> Path:
        return self._file

    def __len__(self) -> int:
        return len(self._units)

    def __iter__(self) -> Iterator[CorrectionUnit]:
        return iter(list(self._units.values()))

    def memory(self, pair: LanguageCodes) -> TranslationMemory | None:
        return self._memories.get(pair)

    async def put(self, pair: LanguageCodes, source: str, target: str) -> CorrectionUnit:
        """Store the translation of this text. It replaces an earlier one."""
        for text in (source, target):
            if not text.strip():
                raise Refusal(400, "Invalid request: a correction needs a text and its translation")
            if _NO_XML.search(text):
                raise Refusal(400, "Invalid request: the text has control characters")
        unit = CorrectionUnit(*pair, source.strip(), target.strip(), self._now().replace(microsecond=0))
        await self._change(_Change({_key(unit): unit}))
        return unit

    async def remove(self, pair: LanguageCodes, source: str) -> None:
        key = (*pair, same_spaces(source))
        if key not in self._units:
            raise Refusal(404, "There is no such correction")
        await self._change(_Change({}, frozenset([key])))

    def tmx(self) -> bytes:
        return b"".join(written(self))

    def _too_old(self) -> frozenset[Key]:
        oldest = self._now() - timedelta(days=self._limits.corrections_days)
        return frozenset(key for key, unit in self._units.items() if unit.when < oldest)

    async def _change(self, change: _Change) -> None:
        """Apply a change completely, even if the client disconnects."""
        task = asyncio.get_running_loop().create_task(self._in_turn(change))
        task.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        await asyncio.shield(task)

    async def _in_turn(self, change: _Change) -> None:
        async with self._turn:
            removed = change.removed | self._too_old()
            left = {
                key: unit for key, unit in self._units.items() if key not in removed and key not in change.put
            }
            units = {**left, **change.put}
            await asyncio.to_thread(self._save, units)
            gone = [self._units[key] for key in removed if key in self._units]
            self._units = units
            for unit in gone:
                self._forget(unit)
            for unit in change.put.values():
                self._remember(unit)

    def _check(self, units: dict[Key, CorrectionUnit]) -> None:
        limits = self._limits
        size = sum(_OVERHEAD + len(f"{unit.source}{unit.target}".encode()) for unit in units.values())
        for what, found, most in (
            ("corrections", len(units), limits.corrections),
            ("bytes", size, limits.corrections_bytes),
        ):
            if found > most:
                raise Refusal(456, f"Quota exceeded: this server keeps {most:,} {what} of corrections")

    def _save(self, units: dict[Key, CorrectionUnit]) -> None:
        self._check(units)
        try:
            with replacing(self._file, 0o600) as stream:
                for part in written(units.values()):
                    stream.write(part)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            told = "the disk of the server is full" if full else "the server cannot write its file"
            raise Refusal(507 if full else 503, f"The corrections are as they were: {told}") from None

    def _remember(self, unit: CorrectionUnit) -> None:
        pair = (unit.src_lang, unit.tgt_lang)
        self._memories.setdefault(pair, TranslationMemory(())).put(unit.source, unit.target)

    def _forget(self, unit: CorrectionUnit) -> None:
        self._memories[unit.src_lang, unit.tgt_lang].drop(unit.source)


def _key(unit: CorrectionUnit) -> Key:
    return unit.src_lang, unit.tgt_lang, same_spaces(unit.source)
