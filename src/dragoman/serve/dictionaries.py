"""The terms of one language pair from a request: parsed, checked against the limits, and ready for lookup."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dragoman.errors import UserError
from dragoman.serve.fields import Fields
from dragoman.serve.languages import LanguageCodes, base
from dragoman.serve.limits import Limits
from dragoman.serve.refusal import Refusal
from dragoman.text.glossary import Glossary, GlossaryEntry

LONGEST_TERM = 256
"""Largest number of characters of a term or of its translation. A short text may contain a term two thousand
times."""
_LONGEST_CODE = 32


@dataclass(frozen=True)
class Dictionary:
    """The terms of one language pair, ready for lookup."""

    entries: Mapping[str, str]
    glossary: Glossary
    size: int
    """Size of the terms in bytes."""

    @property
    def tsv(self) -> str:
        return "\n".join(f"{term}\t{name}" for term, name in self.entries.items())


@dataclass(frozen=True)
class Given:
    """The terms of a request, not parsed yet."""

    pair: LanguageCodes
    text: str
    form: Literal["tsv", "csv"]


def read(limits: Limits, given: Given) -> Dictionary:
    return dictionary_of(limits, _entries(given))


def dictionary_of(limits: Limits, entries: dict[str, str]) -> Dictionary:
    size = sum(len(f"{term}{name}".encode()) + 2 for term, name in entries.items())
    if len(entries) > limits.glossary_terms or size > limits.glossary_bytes:
        most = f"{limits.glossary_terms:,} terms or {limits.glossary_bytes:,} bytes"
        raise Refusal(413, f"Bad request: the dictionary has more than {most}")
    if not entries:
        raise Refusal(400, "Bad request: the glossary has no entries")
    return Dictionary(entries, glossary_of(entries), size)


def glossary_of(entries: Mapping[str, str]) -> Glossary:
    """A glossary from the terms of a client. A term without a translation is kept as it is."""
    if any(len(text) > LONGEST_TERM for entry in entries.items() for text in entry):
        raise Refusal(400, f"Bad request: a term or its name has more than {LONGEST_TERM} characters")
    try:
        return Glossary([GlossaryEntry(term, (name,) if name else ()) for term, name in entries.items()])
    except UserError:  # the error message would contain the term
        raise Refusal(400, "Bad request: a source term is empty or comes twice") from None


def given_of(fields: Fields) -> Given:
    """The terms of a request: `source_lang`, `target_lang`, `entries`, `entries_format`."""
    form = fields.text("entries_format", "tsv")
    if form not in ("tsv", "csv"):
        raise Refusal(400, "Value for 'entries_format' must be tsv or csv")
    return Given(pair_of(fields), fields.text("entries"), "csv" if form == "csv" else "tsv")


def pair_of(fields: Fields) -> LanguageCodes:
    pair = base(fields.text("source_lang")), base(fields.text("target_lang"))
    if pair[0] == pair[1]:
        raise Refusal(400, "Value for 'target_lang' must be another language than 'source_lang'")
    if max(map(len, pair)) > _LONGEST_CODE:
        raise Refusal(400, "Value for 'source_lang' or 'target_lang' is no code of a language")
    return pair


def _entries(given: Given) -> dict[str, str]:
    lines = [line for line in given.text.replace("\r\n", "\n").split("\n") if line.strip()]
    entries: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        columns = [part.strip() for part in _columns(line, given.form, number)]
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
