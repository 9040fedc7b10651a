"""Ways of writing a date in many languages, from the Unicode CLDR through Babel.

A *way* is a locale, a pattern and a variant (lower case, no commas, ...). The patterns of the CLDR are
compiled into tables here, because formatting a hundred thousand dates one by one through Babel takes
minutes. Every text means one date: a pattern that could be read in two orders is left out.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache

from dragoman.errors import missing_extra

FIRST, LAST = date(1950, 1, 1), date(2049, 12, 31)
"""The hundred years that a two-digit year can mean."""

LOCALES = (
    *("en", "en_GB", "de", "nl", "sv", "da", "nb", "is", "fr", "es", "pt", "it", "ca", "ro"),
    *("pl", "cs", "sk", "sl", "sr", "bg", "ru", "uk", "lv", "lt", "et", "fi", "hu", "eu"),
    *("sq", "el", "hy", "ka", "tr", "he", "ar", "hi", "id", "sw", "vi", "zh", "ja", "ko"),
)

# Babel resolves aliases in place, so a stand-alone name that a locale inherits depends on which locales
# were loaded before it. Only these locales have stand-alone names of their own.
NOMINATIVE_MONTHS = frozenset({"ca", "fi", "lt", "pl", "cs", "sk", "el", "ru", "uk", "hy"})
NOMINATIVE_WEEKDAYS = frozenset({"fi"})

_ENGLISH = {
    day: f"{day}{'th' if 4 <= day <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"
    for day in range(1, 32)
}
ORDINALS = {"en": _ENGLISH, "en_GB": _ENGLISH, "fr": {1: "1er"}, "it": {1: "1º"}, "pt": {1: "1º"}}

# Common in writing but absent from the CLDR. The letter `o` is our own: the day as an ordinal number.
EXTRA_PATTERNS: dict[str, tuple[str, ...]] = {
    "en": ("MMMM o, y", "EEEE, MMMM o, y", "MMM o y", "MMMM o, yy", "d-MMM-y", "y-MM-dd", "EEE y-MM-dd"),
    "en_GB": ("o MMMM y", "o 'of' MMMM y", "'the' o 'of' MMMM, y", "EEEE o MMMM y", "o 'of' MMMM yy"),
    "fr": ("o MMMM y", "EEEE o MMMM y", "o MMM y", "'le' d MMMM y", "'le' EEEE d MMMM y"),
    "es": ("d 'de' MMMM 'del' y", "EEEE d MMMM y", "d-MMM-y"),
    "it": ("o MMMM y", "EEEE o MMMM y", "o MMM y"),
    "pt": ("o 'de' MMMM 'de' y", "EEEE, o 'de' MMMM 'de' y", "o 'de' MMM 'de' y", "d MMMM y"),
    "de": ("EEEE, 'den' d. MMMM y", "'den' d. MMMM y"),
    "sv": ("'den' d MMMM y", "EEEE 'den' d MMMM y", "d/M y"),
    "ru": ("EEEE, d MMMM y 'года'", "d MMMM y 'года'", "d MMMM y"),
    "uk": ("EEEE, d MMMM y 'року'", "d MMMM y 'року'", "d MMMM y"),
}

DateField = tuple[str, int, str]
"""A letter of a CLDR pattern, its repeat count, and the literal text if the field is text."""

SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "lower case": str.lower,
    "capital": lambda text: text[:1].upper() + text[1:],
    "no commas": lambda text: _COMMA.sub("", text),
    "no stops": lambda text: _STOP.sub("", text),
    "lower case, no commas or stops": lambda text: _STOP.sub("", _COMMA.sub("", text)).lower(),
}

_PATTERN = re.compile(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']+")
_UNTYPED = {ord(mark): None for mark in "\u200e\u200f\u061c"} | {
    ord(space): " " for space in "\u00a0\u202f\u2009"
}
_COMMA = re.compile("[,،]")
_STOP = re.compile(r"\.(?!\d)")


@dataclass(frozen=True)
class Way:
    """One way of writing a date: `write` turns a day into text."""

    locale: str
    pattern: str
    variant: str
    parts: tuple[tuple[int, Mapping[int, str]], ...]
    """The parts in order: an index into (0, day, month, weekday, year) and the words for it."""
    vocabulary: frozenset[str]
    """The name lists and words that this way uses. Empty if the date is written in numbers only."""
    days: Collection[int]
    """The days of a month that this way can write: «1er» exists, «2er» does not."""

    @property
    def name(self) -> str:
        return self.pattern if self.variant == "plain" else f"{self.pattern}, {self.variant}"

    def write(self, day: date) -> str:
        values = (0, day.day, day.month, day.weekday(), day.year)
        return SPELLINGS[self.variant]("".join([words[values[slot]] for slot, words in self.parts]))


@cache
def ways_of(locale: str) -> tuple[Way, ...]:
    """Every way of writing dates in a locale, without ways that always give the same text as another."""
    probes = [
        date(year, month, day)
        for year in (1987, 2026)
        for month in range(1, 13)
        for day in (1, 1 + 2 * month)
    ]
    tables = _tables(locale)
    found: dict[tuple[str, ...], Way] = {}
    for pattern, fields in _patterns(locale).items():
        parts = tuple((0, {0: text}) if text else tables[letter, count] for letter, count, text in fields)
        days = tables["o", 1][1] if "o" in _order(fields) else range(1, 32)
        for variant in SPELLINGS:
            if "stops" in variant and _numeric_month(fields):
                continue  # without full stops the numbers would run together
            way = Way(locale, pattern, variant, parts, _vocabulary(fields), days)
            found.setdefault(tuple(way.write(day) for day in probes if day.day in days), way)
    return tuple(found.values())


def _patterns(locale: str) -> dict[str, list[DateField]]:
    """The patterns of the CLDR, patterns derived from them, and our own; unambiguous ones only."""
    data = _babel_locale(locale)
    cldr = {name: _parse(data.date_formats[name].pattern) for name in ("full", "long", "medium", "short")}
    skeletons = data.datetime_skeletons
    cldr |= {
        name: _parse(skeletons[name].pattern)
        for name in ("yMMMd", "yMMMEd", "yMd", "yMEd")
        if name in skeletons
    }
    found = dict(cldr)
    found["full, short weekday"] = _swap(cldr["full"], "Ec", 4, ("E", 3))
    if locale != "eu":  # its long patterns inflect the month, and an abbreviation takes no ending
        found["full, short names"] = _swap(found["full, short weekday"], "M", 4, ("M", 3))
        found["long, short month"] = _swap(cldr["long"], "M", 4, ("M", 3))
    found["long, two-figure day"] = _swap(cldr["long"], "d", 1, ("d", 2))
    if locale in NOMINATIVE_MONTHS:
        found["long, nominative"] = _swap(cldr["long"], "M", 4, ("L", 4))
        found["full, nominative"] = _swap(cldr["full"], "M", 4, ("L", 4))
    for name in ("full", "long", "medium", "yMMMd", "yMd"):
        if name in cldr:
            found[f"{name}, two-figure year"] = _swap(cldr[name], "y", 1, ("y", 2))
    found |= {pattern: _parse(pattern) for pattern in EXTRA_PATTERNS.get(locale, ())}
    return {name: fields for name, fields in found.items() if _one_reading(fields)}


def _parse(pattern: str) -> list[DateField]:
    """Split a CLDR pattern into letters and texts. No-break spaces and direction marks are not typed."""
    fields: list[DateField] = []
    for match in _PATTERN.finditer(pattern):
        quoted, letter = match.groups()
        if letter:
            fields.append((letter, len(match[0]), ""))
        else:
            text = match[0] if quoted is None else quoted or "'"
            fields.append(("", 0, text.translate(_UNTYPED)))
    return [field for field in fields if field[0] or field[2]]


def _swap(fields: Sequence[DateField], letters: str, count: int, new: tuple[str, int]) -> list[DateField]:
    return [(*new, "") if f[0] and f[0] in letters and f[1] == count else f for f in fields]


def _order(fields: Sequence[DateField]) -> str:
    """The order of day, month and year: dMy, Mdy, yMd, ..., with o for an ordinal day."""
    return "".join(letter.replace("L", "M") for letter, _, _ in fields if letter and letter in "doMLy")


def _numeric_month(fields: Sequence[DateField]) -> bool:
    return any(letter in ("M", "L") and count <= 2 for letter, count, _ in fields)


def _one_reading(fields: Sequence[DateField]) -> bool:
    """Whether the order of a pattern can be recognised from the text, given all other patterns of this file.

    Numeric dates are day, month, year or year, month, day; 5/9/2026 is never the ninth of May. A two-digit
    year comes last, or carries a mark that means year.
    """
    order = _order(fields)
    texts = "".join(text for _, _, text in fields)
    marked = any(mark in texts for mark in "年년")
    short_year = ("y", 2, "") in fields
    if sorted(order.replace("o", "d")) != ["M", "d", "y"]:
        return False
    if not _numeric_month(fields) or marked:
        return not short_year or marked or order.endswith("y")
    if short_year:
        return order == "dMy" and "-" not in texts
    return order in ("dMy", "yMd")


def _vocabulary(fields: Sequence[DateField]) -> frozenset[str]:
    found = {text.strip(" ,.") for _, _, text in fields if any(map(str.isalpha, text))}
    for letter, count, _ in fields:
        if letter in ("E", "c"):
            found.add("weekday" if count == 4 else "short weekday")
        elif letter == "o" or (letter in ("M", "L") and count > 2):
            found.add(letter * count)
    return frozenset(found)


def _tables(locale: str) -> dict[tuple[str, int], tuple[int, Mapping[int, str]]]:
    """For each letter of a pattern: the part of the date that it writes, and the words for it."""
    data = _babel_locale(locale)
    months, weekdays = data.months["format"], data.days["format"]
    nominative = data.months["stand-alone"] if locale in NOMINATIVE_MONTHS else months
    alone = data.days["stand-alone"] if locale in NOMINATIVE_WEEKDAYS else weekdays
    plain = {n: str(n) for n in range(1, 32)}
    padded = {n: f"{n:02d}" for n in range(1, 32)}
    years = {n: str(n) for n in range(FIRST.year, LAST.year + 1)}
    numbers = {"d": (1, plain, padded), "M": (2, plain, padded), "L": (2, plain, padded)}
    tables: dict[tuple[str, int], tuple[int, Mapping[int, str]]] = {}
    for letter, (slot, one, two) in numbers.items():
        tables |= {(letter, 1): (slot, one), (letter, 2): (slot, two)}
    tables["o", 1] = (1, ORDINALS.get(locale, {}))
    tables |= {("y", count): (4, years) for count in (1, 4)}
    tables["y", 2] = (4, {year: text[2:] for year, text in years.items()})
    tables |= {("M", 3): (2, _typed(months["abbreviated"])), ("M", 4): (2, _typed(months["wide"]))}
    tables["L", 4] = (2, _typed(nominative["wide"]))
    for letter, names in (("E", weekdays), ("c", alone)):
        tables |= {(letter, count): (3, _typed(weekdays["abbreviated"])) for count in (1, 2, 3)}
        tables[letter, 4] = (3, _typed(names["wide"]))
    return tables


def _typed(names: Mapping[int, str]) -> dict[int, str]:
    return {number: unicodedata.normalize("NFC", name.translate(_UNTYPED)) for number, name in names.items()}


def _babel_locale(locale: str):
    try:
        from babel import Locale
    except ImportError:
        raise missing_extra("babel", "demo", "the dates task") from None
    return Locale.parse(locale)
