"""gettext: PO files as people edit them, MO files as programs read them.

    #, fuzzy, c-format
    msgctxt "menu"
    msgid "%d file"
    msgid_plural "%d files"
    msgstr[0] "%d Datei"
    msgstr[1] "%d Dateien"

The singular pairs with the first form and the plural with the second (with the only one where there is one).
What is fuzzy or untranslated is an empty pair, so that it is counted and not lost; obsolete entries are
skipped.
"""

import codecs
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from email.parser import HeaderParser
from functools import cached_property
from itertools import chain
from typing import NoReturn

from dragoman.data.config import SourceConfig
from dragoman.data.formats.bitext import as_pair_of_languages
from dragoman.data.formats.lines import decoded_lines, open_binary, read_chunks
from dragoman.data.formats.pair import Pair, check_text
from dragoman.errors import UserError

MAX_MO = 256 << 20
_MAGIC = 0x950412DE
_CHARSET = re.compile(rb"""Content-Type:[^"\n]*charset=([\w.:-]+)""", re.IGNORECASE)
_ESCAPES = dict(zip("ntrabfv", "\n\t\r\a\b\f\v", strict=True)) | {sign: sign for sign in "\\\"?'"}
"""Escape sequences after a backslash."""
_KEYWORDS = ("msgctxt", "msgid", "msgid_plural", "msgstr")


@dataclass
class Field:
    """A string of an entry: its lines, and the numbers of the first and last one."""

    pieces: list[str]
    first: int
    last: int

    @cached_property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass
class Entry:
    """A message. `begins` is the line of its first keyword."""

    begins: int
    fields: dict[str, Field] = field(default_factory=dict)
    """Fields by keyword; plural forms are `msgstr[0]` and so on."""
    flags: tuple[str, ...] = ()
    flags_line: int | None = None

    def text(self, keyword: str) -> str:
        return self.fields[keyword].text if keyword in self.fields else ""

    @property
    def forms(self) -> list[str]:
        return [keyword for keyword in self.fields if keyword.startswith("msgstr")]

    @property
    def is_header(self) -> bool:
        return not self.text("msgid") and "msgctxt" not in self.fields

    @property
    def fuzzy(self) -> bool:
        return "fuzzy" in self.flags


def read_po(source: SourceConfig, _src_lang: str, _tgt_lang: str) -> Iterator[Pair]:
    path, entry = source.files[0], None
    for entry in parse_po(_po_lines(path), path):
        if not entry.is_header:
            forms = [] if entry.fuzzy else [entry.text(form) for form in entry.forms]
            plural = entry.text("msgid_plural") if "msgid_plural" in entry.fields else None
            for src, tgt in _sides(entry.text("msgid"), plural, forms):
                yield Pair(check_text(src, f"{path}:{entry.begins}", "msgid"), tgt, entry.begins)
    if entry is None:
        raise UserError(f"{path}: the file has no entries")


def read_mo(source: SourceConfig, _src_lang: str, _tgt_lang: str) -> Iterator[Pair]:
    """Pairs of a compiled catalogue; what was fuzzy is not in it. Lines are numbers of messages."""
    path = source.files[0]
    for number, (key, value) in enumerate(_messages(path), start=1):
        if key:
            msgid, *plural = key.rpartition("\4")[2].split("\0")
            yield from (
                Pair(src, tgt, number)
                for src, tgt in _sides(msgid, plural[0] if plural else None, value.split("\0"))
            )


def languages_of_po(path: str) -> tuple[str, str] | None:
    header = next(parse_po(_po_lines(path), path), None)
    return _languages(header.text("msgstr")) if header is not None and header.is_header else None


def languages_of_mo(path: str) -> tuple[str, str] | None:
    return next((_languages(value) for key, value in _messages(path) if not key), None)


def _po_lines(path: str) -> Iterator[str]:
    """The lines of a catalogue in the encoding that its header names; UTF-8 where it names none."""
    return decoded_lines(_as_utf8(read_chunks(path), path), path)


def _as_utf8(chunks: Iterator[bytes], path: str) -> Iterator[bytes]:
    first = next(chunks, b"")
    found = _CHARSET.search(first)
    charset = _known(found[1].decode("ascii") if found else None)
    if charset == "utf-8":
        yield first
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(charset)()
    try:
        for chunk in chain((first,), chunks):
            yield decoder.decode(chunk).encode("utf-8")
        yield decoder.decode(b"", final=True).encode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: its header says {charset}, and it is not text in that ({error})") from None


def _known(charset: str | None) -> str:
    """Templates have the placeholder CHARSET, and old tools name unknown encodings; both are read as
    UTF-8."""
    try:
        b"a".decode(charset or "utf-8")
    except LookupError:
        return "utf-8"
    return codecs.lookup(charset or "utf-8").name


def _languages(header: str) -> tuple[str, str] | None:
    """gettext names the target alone; the source is told by some editors, and English by custom."""
    named = HeaderParser().parsestr(header)
    source = named.get("X-Source-Language") or "en"
    return as_pair_of_languages(source, named.get("Language"))


def _sides(msgid: str, plural: str | None, forms: Sequence[str]) -> Iterator[tuple[str, str]]:
    first, second = [*forms, "", ""][:2]
    if plural is None:
        yield msgid, first
    elif len(forms) == 1:
        yield plural, first
    else:
        yield msgid, first
        yield plural, second


def parse_po(lines: Iterable[str], path: str) -> Iterator[Entry]:
    """The entries of a file without the obsolete ones, as a stream."""
    return _Parser(path).entries(lines)


class _Parser:
    def __init__(self, path: str) -> None:
        self._path = path
        self._flags: list[str] = []
        self._flags_line: int | None = None
        self._entry: Entry | None = None
        self._field: Field | None = None
        self._translated = False

    def entries(self, lines: Iterable[str]) -> Iterator[Entry]:
        number = 0
        for number, line in enumerate(lines, start=1):
            line = line.strip(" \t\r\f\v")
            starts = line.startswith("#") or line.startswith(("msgctxt", "msgid"))
            if self._translated and (not line or (starts and not line.startswith("msgid_plural"))):
                yield self._finish()
            if line.startswith("#"):
                self._comment(line, number)
            elif line.startswith('"'):
                if self._field is None:
                    self._fail(number, "a string that belongs to no keyword")
                self._field.pieces.append(self._string(line, number))
                self._field.last = number
            elif line:
                self._keyword(line, number)
        if self._entry is not None:
            if not self._translated:
                self._fail(number, "the entry has no msgstr; the file may be cut off")
            yield self._finish()

    def _finish(self) -> Entry:
        assert self._entry is not None
        entry, self._entry, self._field, self._translated = self._entry, None, None, False
        if "msgid" not in entry.fields:
            self._fail(entry.begins, "the entry has no msgid")
        return entry

    def _comment(self, line: str, number: int) -> None:
        self._field = None
        if line.startswith("#,"):
            self._flags += [flag.strip() for flag in line[2:].split(",") if flag.strip()]
            self._flags_line = number
        elif line.startswith("#~"):
            self._flags, self._flags_line = [], None  # they were those of an obsolete entry

    def _keyword(self, line: str, number: int) -> None:
        quote = line.find('"')
        keyword = line[:quote].strip() if quote > 0 else line.split()[0]
        if not (keyword in _KEYWORDS or (keyword.startswith("msgstr[") and keyword[7:-1].isdigit())):
            self._fail(number, f"expected msgid, msgstr or a comment, found {keyword[:40]!r}")
        if self._entry is None:
            self._entry = Entry(number, {}, tuple(self._flags), self._flags_line)
            self._flags, self._flags_line = [], None
        if keyword in self._entry.fields:
            self._fail(number, f"{keyword} comes twice in one entry")
        self._field = Field([self._string(line[quote:] if quote > 0 else "", number)], number, number)
        self._entry.fields[keyword] = self._field
        self._translated |= keyword.startswith("msgstr")

    def _string(self, quoted: str, number: int) -> str:
        if len(quoted) < 2 or not quoted.endswith('"'):
            self._fail(number, "a string without its closing quote")
        inside = quoted[1:-1]
        if "\\" not in inside:
            if '"' in inside:
                self._fail(number, 'a quote inside a string; write \\"')
            return inside
        return self._unescape(inside, number)

    def _unescape(self, inside: str, number: int) -> str:
        parts: list[str] = []
        at = 0
        while at < len(inside):
            char = inside[at]
            if char == '"':
                self._fail(number, 'a quote inside a string; write \\"')
            if char != "\\":
                parts.append(char)
                at += 1
                continue
            escaped = inside[at + 1 : at + 2]
            if escaped in _ESCAPES and escaped:
                parts.append(_ESCAPES[escaped])
                at += 2
                continue
            length, base = (2, 16) if escaped == "x" else (3, 8)
            digits = inside[at + 1 + (base == 16) : at + 1 + (base == 16) + length]
            try:
                parts.append(chr(int(digits, base)))
            except ValueError:
                self._fail(number, f"the escape \\{escaped} is not known")
            at += 1 + (base == 16) + length
        return "".join(parts)

    def _fail(self, number: int, what: str) -> NoReturn:
        raise UserError(f"{self._path}:{number}: not a PO file that can be read: {what}")


def escape_po(text: str) -> str:
    """Escape a string for a PO file."""
    for char, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r")):
        text = text.replace(char, escaped)
    return text


def _messages(path: str) -> Iterator[tuple[str, str]]:
    with open_binary(path) as file:
        data = file.read(MAX_MO + 1)
    if len(data) > MAX_MO:
        raise UserError(f"{path}: more than {MAX_MO >> 20} MiB are too many for an MO file")
    order = next((o for o in "<>" if data[:4] == struct.pack(f"{o}I", _MAGIC)), None)
    if order is None or len(data) < 28:
        raise UserError(f"{path}: not an MO file (it does not begin with the number that marks one)")
    _, count, keys, values = struct.unpack_from(f"{order}4I", data, 4)
    if max(keys, values) + 8 * count > len(data):
        raise UserError(f"{path}: the MO file is cut off or damaged: its tables go past its end")
    charset = "utf-8"
    for number in range(count):
        raw = []
        for table in (keys, values):
            length, start = struct.unpack_from(f"{order}2I", data, table + 8 * number)
            if start + length > len(data):
                raise UserError(f"{path}:{number + 1}: the MO file is cut off: a text goes past its end")
            raw.append(data[start : start + length])
        if not raw[0]:  # the header, which says what all texts are encoded in, itself included
            header = HeaderParser().parsestr(raw[1].decode("ascii", "replace"))
            charset = _known(header.get_content_charset())
        try:
            key, value = (text.decode(charset) for text in raw)
        except (UnicodeDecodeError, LookupError) as error:
            raise UserError(f"{path}:{number + 1}: not text in {charset} ({error})") from None
        yield key, value
