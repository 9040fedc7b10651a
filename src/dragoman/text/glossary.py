"""Glossaries: required translations of terms.

    # source <tab> target <tab> case <tab> notes        blank lines, and lines that begin with #, are skipped
    heart attack    Herzinfarkt|Myokardinfarkt          one of the variants
    IT              IT    exact
    Levant Inc.                                         no target: the term is copied

Terms are found as whole words in one pass over the text; at each position the longest one wins.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Literal, get_args

from dragoman.errors import UserError, no_such_file
from dragoman.text.segment import nfc
from dragoman.text.word_boundaries import is_word_character

Case = Literal["smart", "exact", "ignore"]
"""`smart`: as written; a term in lower case also with a capital at the beginning of the text."""
LARGEST_FILE = 64 << 20
_SEPARATED = re.compile(r" {2,}|[;|]| = |[-=]>|→")
"""Separators between columns in files without tabs."""
_BETWEEN = "\0"  # two units, so that no others make the same text


@dataclass(frozen=True)
class GlossaryEntry:
    source: str
    targets: tuple[str, ...] = ()
    """Variants, of which one is used; none: the term is copied."""
    case: Case = "smart"
    where: str = ""


@dataclass(frozen=True)
class TermMatch:
    """A term at `text[start:end]`, and its possible translations there."""

    entry: GlossaryEntry
    start: int
    end: int
    targets: tuple[str, ...]


class Glossary:
    """Terms and an index of them in folded case; for every first unit the index has the lengths of its
    terms."""

    def __init__(self, entries: Sequence[GlossaryEntry]) -> None:
        self.entries = tuple(entries)
        self._terms: dict[str, list[GlossaryEntry]] = {}
        lengths: dict[str, set[int]] = {}
        seen: dict[tuple[str, Case], GlossaryEntry] = {}
        for entry in self.entries:
            units = _units(nfc(entry.source))
            if not units:
                raise UserError(f"{entry.where or 'glossary'}: the source term is empty")
            key = ("".join(unit for _, _, unit in units), entry.case)
            if key in seen:
                where, first = entry.where or "glossary", seen[key].where or "an earlier entry"
                raise UserError(f"{where}: {entry.source!r} is there already ({first}); keep one of them")
            seen[key] = entry
            folded = [unit.casefold() for _, _, unit in units]
            self._terms.setdefault(_BETWEEN.join(folded), []).append(entry)
            lengths.setdefault(folded[0], set()).add(len(folded))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}

    @classmethod
    def load(cls, path: Path | str) -> "Glossary":
        """Read a `.csv` file, or one with tabs under any other name."""
        path = Path(path)
        entries = [_entry(fields, f"{path}:{number}") for number, fields in _rows(path)]
        if not entries:
            raise UserError(f"{path}: the glossary has no terms")
        return cls(entries)

    def matches(self, text: str) -> list[TermMatch]:
        """The terms in `text`, from left to right; none overlaps another."""
        read = _Read(nfc(text))
        found: list[TermMatch] = []
        place = 0
        begun = False  # whether there was a word before
        while place < len(read.units):
            match, length = self._longest(read, place, begun)
            if match is not None:
                found.append(match)
            begun |= any(is_word_character(unit[-1]) for _, _, unit in read.units[place : place + length])
            place += length
        return found

    def _longest(self, read: "_Read", place: int, begun: bool) -> tuple[TermMatch | None, int]:
        """The longest term that begins at `place`, and the number of units to advance."""
        for length in self._lengths.get(read.folded(place, place + 1), ()):
            for entry in self._terms.get(read.folded(place, place + length), ()):
                start, end = read.units[place][0], read.units[place + length - 1][1]
                targets = _targets(entry, read.text[start:end], not begun)
                if targets is not None:
                    return TermMatch(entry, start, end, targets), length
        return None, 1


class _Read:
    """A text and its units, also in folded case."""

    def __init__(self, text: str) -> None:
        self.text, self.units = text, _units(text)
        folded = [unit.casefold() for _, _, unit in self.units]
        self._folded = _BETWEEN.join(folded)
        self._starts = [0, *accumulate(len(unit) + len(_BETWEEN) for unit in folded)]

    def folded(self, first: int, end: int) -> str:
        """These units in the form of the index; empty if the text ends before."""
        if end > len(self.units):
            return ""
        return self._folded[self._starts[first] : self._starts[end] - len(_BETWEEN)]


def _units(text: str) -> list[tuple[int, int, str]]:
    """Words, single other characters, and white space as one space each; none at the ends."""
    units: list[tuple[int, int, str]] = []
    place = 0
    while place < len(text):
        end = place + 1
        if text[place].isspace():
            while end < len(text) and text[end].isspace():
                end += 1
        elif is_word_character(text[place]):
            while end < len(text) and is_word_character(text[end]):
                end += 1
        units.append((place, end, " " if text[place].isspace() else text[place:end]))
        place = end
    while units and units[-1][2] == " ":
        units.pop()
    return units[1:] if units and units[0][2] == " " else units


def _targets(entry: GlossaryEntry, surface: str, at_beginning: bool) -> tuple[str, ...] | None:
    """The possible translations of a term written as `surface`; None if the case does not match."""
    term = " ".join(nfc(entry.source).split())
    written = " ".join(surface.split())
    capital = written[:1] != term[:1] and written[1:] == term[1:] and written[:1].isupper()
    if written != term:
        smart = entry.case == "smart" and at_beginning and term.islower() and capital
        if not (smart or (entry.case == "ignore" and written.casefold() == term.casefold())):
            return None
    if not entry.targets:
        return (written,)
    # If the source has a capital because it begins a sentence, the translation may have one too.
    raised = [target[:1].upper() + target[1:] for target in entry.targets] if capital else []
    return tuple(dict.fromkeys([*entry.targets, *raised]))


def _refuse_other_separator(line: str, where: str) -> None:
    """A line without a tab is a term to copy, unless it looks as if it had two columns."""
    if "\t" not in line and (mark := _SEPARATED.search(line.strip())):
        raise UserError(
            f"{where}: no tab between the term and its translation, but {mark[0]!r}; separate the columns by "
            "a tab, or name the file .csv"
        )


def _entry(fields: list[str], where: str) -> GlossaryEntry:
    source, target, case = [*(value.strip() for value in fields), "", ""][:3]
    if not source:
        raise UserError(f"{where}: the source term is empty; write it in the first column")
    if case and case not in get_args(Case):
        raise UserError(f"{where}: the case rule must be smart, exact or ignore, found {case!r}")
    variants = tuple(variant.strip() for variant in target.split("|")) if target else ()
    if not all(variants):
        raise UserError(f"{where}: {target!r} has an empty variant; write something on both sides of each |")
    rule: Case = "exact" if case == "exact" else "ignore" if case == "ignore" else "smart"
    return GlossaryEntry(source, variants, rule, where)


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines that are not comments, with their numbers, cut into columns."""
    for number, line in enumerate(_lines(path), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if path.suffix.lower() != ".csv":
            _refuse_other_separator(line, f"{path}:{number}")
            yield number, line.split("\t")
            continue
        try:
            yield number, next(csv.reader([line], strict=True))
        except csv.Error as error:
            raise UserError(f"{path}:{number}: not a line of CSV ({error})") from None


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise no_such_file(path) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    if len(data) > LARGEST_FILE:
        raise UserError(f"{path}: more than {LARGEST_FILE} bytes are too many for a glossary")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}:{line}: not valid UTF-8 (0x{data[error.start]:02X})") from None
    return [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
