"""Corrections as TMX 1.4, which every translation tool reads. Each unit has its two languages and its time.

A comment at the end has the SHA-256 of everything before it. A file with a wrong hash is refused; a file
without one was written by another tool and is read unverified.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from dragoman.data.formats.bitext import Segment, normal
from dragoman.data.formats.tmx import HIDDEN
from dragoman.data.formats.xml import check_root, read_xml
from dragoman.errors import UserError
from dragoman.files import read_regular

_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
    '<header creationtool="dragoman" creationtoolversion="1" segtype="sentence" o-tmf="dragoman" '
    'adminlang="en" srclang="*all*" datatype="plaintext"/>\n<body>\n'
)
_TAIL = "</body>\n</tmx>\n"
_TIME = "%Y%m%dT%H%M%SZ"
_SEAL = re.compile(rb"<!-- sha256 ([0-9a-f]{64}) -->\n\Z")
_LINE_END = {"\r": "&#13;"}


@dataclass(frozen=True)
class CorrectionUnit:
    src_lang: str
    tgt_lang: str
    source: str = field(repr=False)
    target: str = field(repr=False)
    when: datetime
    """UTC, in whole seconds."""


def written(units: Iterable[CorrectionUnit]) -> Iterator[bytes]:
    """The parts of a file, in order."""
    digest = hashlib.sha256()
    for part in _parts(units):
        data = part.encode("utf-8")
        digest.update(data)
        yield data
    yield f"<!-- sha256 {digest.hexdigest()} -->\n".encode("ascii")


def _parts(units: Iterable[CorrectionUnit]) -> Iterator[str]:
    yield _HEAD
    for unit in units:
        when = unit.when.strftime(_TIME)
        yield f'<tu srclang={quoteattr(unit.src_lang)} changedate="{when}">'
        for language, text in ((unit.src_lang, unit.source), (unit.tgt_lang, unit.target)):
            yield f"<tuv xml:lang={quoteattr(language)}><seg>{escape(text, _LINE_END)}</seg></tuv>"
        yield "</tu>\n"
    yield _TAIL


def read_units(file: Path, most_bytes: int) -> Iterator[CorrectionUnit]:
    try:
        raw = read_regular(file, most_bytes)
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror})") from None
    seal = _SEAL.search(raw)
    if seal is not None and hashlib.sha256(raw[: seal.start()]).hexdigest().encode("ascii") != seal[1]:
        raise UserError(
            f"{file}: changed since the server wrote it; take a copy of it that is whole, or, if you have "
            "edited it, remove the comment with its SHA-256 at the end"
        )
    return read_xml(file, _Handler(str(file), datetime.now(UTC).replace(microsecond=0)))


class _Handler:
    """Collects units. If a unit has several targets, the first is used."""

    def __init__(self, path: str, now: datetime) -> None:
        self._path, self._now = path, now
        self._done: list[CorrectionUnit] = []
        self._texts: dict[str, str] = {}
        self._source = self._header_source = self._language = ""
        self._when = now
        self._segment: Segment | None = None
        self._is_tmx = False

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        if not self._is_tmx:
            check_root(name, "tmx", self._path, line)
            self._is_tmx = True
        elif self._segment is not None:
            if name in HIDDEN:
                self._segment.hide(HIDDEN[name])
        elif name == "seg" and self._language:
            self._segment = Segment(self._path, line)
        elif name == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif name == "tu":
            self._texts = {}
            self._source = attributes.get("srclang") or self._header_source
            self._when = self._time(attributes.get("changedate") or attributes.get("creationdate"), line)
        elif name == "header":
            self._header_source = attributes.get("srclang", "")

    def _time(self, told: str | None, line: int) -> datetime:
        if told is None:
            return self._now
        try:
            return min(self._now, datetime.strptime(told, _TIME).replace(tzinfo=UTC))
        except ValueError:
            raise UserError(f"{self._path}:{line}: not a time as TMX writes it: {told!r}") from None

    def end(self, name: str) -> None:
        if self._segment is not None:
            if name in HIDDEN:
                self._segment.show()
            elif name == "seg":
                self._texts.setdefault(self._language, self._segment.text)
                self._segment, self._language = None, ""
        elif name == "tu":
            self._add()

    def _add(self) -> None:
        source = next((one for one in self._texts if normal(one) == normal(self._source)), None)
        source = source or next(iter(self._texts), None)
        target = next((one for one in self._texts if one != source), None)
        if source is not None and target is not None:
            texts = self._texts[source], self._texts[target]
            if all(texts):
                self._done.append(CorrectionUnit(source, target, *texts, self._when))

    def text(self, data: str) -> None:
        if self._segment is not None:
            self._segment.add(data)

    def take(self) -> list[CorrectionUnit]:
        done, self._done = self._done, []
        return done
