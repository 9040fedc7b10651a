"""Glossaries that clients make and name, each of one or more pairs of languages; kept in a file if asked."""

import csv
import json
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dragoman.errors import UserError
from dragoman.serve.fields import Fields
from dragoman.serve.languages import base
from dragoman.serve.limits import Limits
from dragoman.serve.refusal import Refusal
from dragoman.text.glossary import Entry, Glossary

Pair = tuple[str, str]


@dataclass
class Dictionary:
    entries: dict[str, str]
    glossary: Glossary = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.entries:
            raise Refusal(400, "Bad request: the glossary has no entries")
        try:
            self.glossary = Glossary([Entry(term, (name,)) for term, name in self.entries.items()])
        except UserError as error:
            raise Refusal(400, f"Bad request: {error}") from None

    @property
    def tsv(self) -> str:
        return "\n".join(f"{term}\t{name}" for term, name in self.entries.items())


@dataclass
class Named:
    id: str
    name: str
    created: str
    dictionaries: dict[Pair, Dictionary]


class Glossaries:
    def __init__(self, limits: Limits, file: Path | None = None) -> None:
        self._limits, self._file = limits, file
        self._all: dict[str, Named] = {}
        if file is not None and file.exists():
            self._all = {one.id: one for one in _load(file)}

    def __iter__(self) -> Any:
        return iter(list(self._all.values()))

    def find(self, name: str) -> Named:
        if name not in self._all:
            raise Refusal(404, "Glossary not found")
        return self._all[name]

    def create(self, name: str, dictionaries: dict[Pair, Dictionary]) -> Named:
        if len(self._all) >= self._limits.glossaries:
            raise Refusal(456, f"Quota exceeded: {self._limits.glossaries} glossaries are there already")
        if not name or len(name) > 1024:
            raise Refusal(400, "Bad request: a glossary needs a name of at most 1024 characters")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        made = Named(secrets.token_hex(16), name, now, dictionaries)
        self._all[made.id] = made
        self.save()
        return made

    def delete(self, name: str) -> None:
        self.find(name)
        del self._all[name]
        self.save()

    def save(self) -> None:
        """Whole or not at all."""
        if self._file is None:
            return
        content = [
            {
                "glossary_id": one.id,
                "name": one.name,
                "creation_time": one.created,
                "dictionaries": [
                    {"source_lang": src, "target_lang": tgt, "entries": own.entries}
                    for (src, tgt), own in one.dictionaries.items()
                ],
            }
            for one in self._all.values()
        ]
        part = self._file.with_name(f".{self._file.name}.{os.getpid()}.part")
        part.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")
        part.replace(self._file)

    def wanted(self, fields: Fields, source: str, target: str) -> Glossary | None:
        """The terms that a request asks for; of several glossaries the first that knows a term wins."""
        names = [*fields.names("glossary_id"), *fields.names("glossary_ids")]
        if not names:
            return None
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
        for one in known:
            merged = one.entries | merged
        return Dictionary(merged).glossary

    def dictionary(self, fields: Fields) -> tuple[Pair, Dictionary]:
        """Of a request: `source_lang`, `target_lang`, `entries`, `entries_format`."""
        text, form = fields.text("entries"), fields.text("entries_format", "tsv")
        if len(text) > self._limits.glossary_bytes:
            raise Refusal(413, f"More than {self._limits.glossary_bytes} characters of entries")
        if form not in ("tsv", "csv"):
            raise Refusal(400, "Value for 'entries_format' must be tsv or csv")
        return pair_of(fields), Dictionary(_entries(text, form))


def pair_of(fields: Fields) -> Pair:
    pair = base(fields.text("source_lang")), base(fields.text("target_lang"))
    if pair[0] == pair[1]:
        raise Refusal(400, "Value for 'target_lang' must be another language than 'source_lang'")
    return pair


def _entries(text: str, form: str) -> dict[str, str]:
    lines = [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
    entries: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        columns = [part.strip() for part in _columns(line, form, number)]
        if len(columns) < 2 or not columns[0] or not columns[1]:
            raise Refusal(400, f"Bad request: line {number} of the entries needs a source and a target term")
        if columns[0] in entries:
            raise Refusal(400, f"Bad request: line {number} of the entries has a source term again")
        entries[columns[0]] = columns[1]
    return entries


def _columns(line: str, form: str, number: int) -> list[str]:
    if form == "tsv":
        return line.split("\t")
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error:
        raise Refusal(400, f"Bad request: line {number} of the entries is not CSV") from None


def _load(file: Path) -> Iterable[Named]:
    try:
        content = json.loads(file.read_bytes())
        return [
            Named(
                one["glossary_id"],
                one["name"],
                one["creation_time"],
                {
                    (own["source_lang"], own["target_lang"]): Dictionary(dict(own["entries"]))
                    for own in one["dictionaries"]
                },
            )
            for one in content
        ]
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror})") from None
    except (ValueError, TypeError, KeyError, RecursionError, Refusal):
        raise UserError(f"{file}: not a file of glossaries that this server wrote; name another") from None
