"""Glossaries that clients create and name, each for one or more language pairs; optionally stored in a file.

    request ─▶ one change at a time ─▶ in a thread: parse terms, check limits, write the file ─▶ in use

Glossaries in use are never modified. A change makes a new set of glossaries, which replaces the old one once
the file is on disk. If the file cannot be written, the memory and the disk both stay unchanged.
"""

import asyncio
import errno
import hashlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from dragoman.errors import UserError
from dragoman.files import replacing
from dragoman.serve.dictionaries import Dictionary, Given, dictionary_of, read
from dragoman.serve.fields import Fields
from dragoman.serve.languages import LanguageCodes, base
from dragoman.serve.limits import Limits
from dragoman.serve.refusal import Refusal
from dragoman.text.glossary import Glossary

LONGEST_NAME = 1024
_MOST_AT_ONCE = 16
"""Largest number of glossaries that one request may name."""
_OVERHEAD = 1024
"""Size in bytes that each dictionary counts in addition to its terms."""
_SEAL = "sha256"
_ESCAPED = 8
"""Largest factor by which escaping can enlarge a text in the file."""

T = TypeVar("T")


@dataclass(frozen=True)
class Named:
    id: str
    name: str
    created: str
    dictionaries: Mapping[LanguageCodes, Dictionary]


Every = dict[str, Named]


class Glossaries:
    def __init__(self, limits: Limits, file: Path | None = None) -> None:
        self._limits, self._file = limits, file
        self._turn = asyncio.Lock()
        self._all: Every = {}
        if file is not None and file.exists():
            self._all = self._load(file)

    def __iter__(self) -> Iterator[Named]:
        return iter(self._all.values())

    def find(self, name: str) -> Named:
        return _found(self._all, name)

    async def create(self, name: str, given: Sequence[Given]) -> Named:
        def edit(every: Every) -> Named:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            dictionaries = {one.pair: read(self._limits, one) for one in given}
            made = Named(secrets.token_hex(16), _checked_name(name), now, dictionaries)
            every[made.id] = made
            return made

        return await self._change(edit)

    async def extend(self, id: str, name: str | None, given: Sequence[Given]) -> Named:
        """Rename a glossary and add terms. New terms replace existing ones."""

        def edit(every: Every) -> Named:
            found = _found(every, id)
            dictionaries = dict(found.dictionaries)
            for one in given:
                old = dictionaries.get(one.pair)
                new = read(self._limits, one)
                dictionaries[one.pair] = (
                    dictionary_of(self._limits, {**old.entries, **new.entries}) if old else new
                )
            named = found.name if name is None else _checked_name(name)
            every[id] = replace(found, name=named, dictionaries=dictionaries)
            return every[id]

        return await self._change(edit)

    async def replace(self, id: str, given: Given) -> Dictionary:
        def edit(every: Every) -> Dictionary:
            found, new = _found(every, id), read(self._limits, given)
            every[id] = replace(found, dictionaries={**found.dictionaries, given.pair: new})
            return new

        return await self._change(edit)

    async def remove(self, id: str, pair: LanguageCodes) -> None:
        def edit(every: Every) -> None:
            found = _found(every, id)
            if pair not in found.dictionaries:
                raise Refusal(404, "Dictionary not found")
            left = {own: one for own, one in found.dictionaries.items() if own != pair}
            every[id] = replace(found, dictionaries=left)

        await self._change(edit)

    async def delete(self, id: str) -> None:
        def edit(every: Every) -> None:
            _found(every, id)
            del every[id]

        await self._change(edit)

    async def wanted(self, fields: Fields, source: str, target: str) -> Glossary | None:
        """The terms that a request selects. If several glossaries have a term, the first one wins."""
        names = [*fields.names("glossary_id"), *fields.names("glossary_ids")]
        if not names:
            return None
        if len(names) > _MOST_AT_ONCE:
            raise Refusal(400, f"Bad request: at most {_MOST_AT_ONCE} glossaries at once")
        if not source:
            raise Refusal(400, "Value for 'source_lang' is required with a glossary.")
        pair = base(source), base(target)
        found = [self.find(name).dictionaries.get(pair) for name in names]
        known = [one for one in found if one is not None]
        if not known:
            raise Refusal(400, f"The glossary has no dictionary from {pair[0]} to {pair[1]}.")
        if len(known) == 1:
            return known[0].glossary
        merged: dict[str, str] = {}
        for one in reversed(known):
            merged |= one.entries
        return (await asyncio.to_thread(dictionary_of, self._limits, merged)).glossary

    async def _change(self, edit: Callable[[Every], T]) -> T:
        """Apply a change completely, even if the client disconnects."""
        task = asyncio.get_running_loop().create_task(self._in_turn(edit))
        task.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        return await asyncio.shield(task)

    async def _in_turn(self, edit: Callable[[Every], T]) -> T:
        def work() -> tuple[Every, T]:
            every = dict(self._all)
            result = edit(every)
            self._check(every)
            if self._file is not None:
                _save(self._file, every)
            return every, result

        async with self._turn:
            self._all, result = await asyncio.to_thread(work)
        return result

    def _check(self, every: Every) -> None:
        """Check the limits on all glossaries together."""
        limits = self._limits
        dictionaries = [one for named in every.values() for one in named.dictionaries.values()]
        for what, found, most in (
            ("glossaries", len(every), limits.glossaries),
            ("terms", sum(len(one.entries) for one in dictionaries), limits.glossaries_terms),
            ("bytes", sum(one.size + _OVERHEAD for one in dictionaries), limits.glossaries_bytes),
        ):
            if found > most:
                raise Refusal(456, f"Quota exceeded: all glossaries together may have {most:,} {what}")

    def _load(self, file: Path) -> Every:
        most = _ESCAPED * self._limits.glossaries_bytes
        try:
            if not file.is_file() or file.stat().st_size > most:
                raise UserError(f"{file}: not a file of at most {most:,} bytes; name another")
            content = _unsealed(file.read_bytes())
            every = {one["glossary_id"]: self._named(one) for one in content}
        except OSError as error:
            raise UserError(f"{file}: cannot be read ({error.strerror})") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(
                f"{file}: not a file of glossaries that this server wrote; name another"
            ) from None
        except Refusal as refusal:
            raise UserError(f"{file}: {refusal.message}") from None
        try:
            self._check(every)
        except Refusal as refusal:
            raise UserError(f"{file}: {refusal.message}") from None
        return every

    def _named(self, content: Any) -> Named:
        dictionaries = {
            (str(own["source_lang"]), str(own["target_lang"])): dictionary_of(
                self._limits, {str(term): str(name) for term, name in own["entries"].items()}
            )
            for own in content["dictionaries"]
        }
        id, name, created = (str(content[key]) for key in ("glossary_id", "name", "creation_time"))
        return Named(id, _checked_name(name), created, dictionaries)


def _found(every: Every, name: str) -> Named:
    if name not in every:
        raise Refusal(404, "Glossary not found")
    return every[name]


def _checked_name(name: str) -> str:
    if not name or len(name) > LONGEST_NAME:
        raise Refusal(400, f"Bad request: a glossary needs a name of at most {LONGEST_NAME} characters")
    return name


def _save(file: Path, every: Every) -> None:
    try:
        with replacing(file, 0o600) as stream:
            digest = hashlib.sha256()
            for piece in _written(every):
                data = piece.encode("utf-8")
                digest.update(data)
                stream.write(data)
            stream.write(_end(digest.hexdigest(), first=not every))
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        told = "the disk of the server is full" if full else "the server cannot write its file"
        raise Refusal(507 if full else 503, f"The glossaries are as they were: {told}") from None


def _written(every: Every) -> Iterator[str]:
    """A JSON list without its end, one dictionary per part."""
    yield "["
    for number, one in enumerate(every.values()):
        head = {"glossary_id": one.id, "name": one.name, "creation_time": one.created}
        told = json.dumps(head, ensure_ascii=False)
        yield f'{"," if number else ""}\n{told[:-1]}, "dictionaries": ['
        for place, ((src, tgt), own) in enumerate(one.dictionaries.items()):
            content = {"source_lang": src, "target_lang": tgt, "entries": dict(own.entries)}
            yield f"{',' if place else ''}\n {json.dumps(content, ensure_ascii=False)}"
        yield "]}"


def _end(sha256: str, first: bool) -> bytes:
    """The end of the file: the last entry is the hash of everything before it."""
    return f"{'' if first else ','}\n{json.dumps({_SEAL: sha256})}\n]\n".encode("ascii")


def _unsealed(raw: bytes) -> list[Any]:
    """The glossaries in a file. Files of an earlier version have no hash."""
    content = json.loads(raw)
    if content and set(content[-1]) == {_SEAL}:
        end = _end(str(content.pop()[_SEAL]), first=not content)
        if raw[-len(end) :] != end or end != _end(hashlib.sha256(raw[: -len(end)]).hexdigest(), not content):
            raise ValueError(_SEAL)
    return content
