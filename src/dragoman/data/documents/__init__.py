"""Documents that are translated in place: everything but the translations stays byte for byte as it was.

One file a format. Each makes a `Document` of a text: its units, and the edits that put translations in.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from dragoman.data.documents.archive import ADVICE, ARCHIVES, OpenArchive
from dragoman.data.documents.encoding import Encoding, decode
from dragoman.data.documents.html import HtmlDocument
from dragoman.data.documents.markdown import MarkdownDocument
from dragoman.data.documents.plain import PlainDocument
from dragoman.data.documents.po import PoDocument
from dragoman.data.documents.subtitles import SubtitleDocument
from dragoman.data.documents.table import JsonlDocument, TsvDocument
from dragoman.data.documents.tmx import TmxDocument
from dragoman.data.documents.unit import Check, Document, Unit, apply, unchecked
from dragoman.data.documents.xliff import XliffDocument
from dragoman.data.formats.lines import open_binary
from dragoman.errors import UserError

__all__ = [
    "ADVICE",
    "DOCUMENTS",
    "SUFFIXES",
    "Check",
    "OpenArchive",
    "OpenDocument",
    "Unit",
    "head_of",
    "open_document",
    "parse_document",
]

MAX_BYTES = 128 << 20

Parse = Callable[[str, str, tuple[str, str], Check], Document]

SUFFIXES: dict[str, Parse] = {
    **dict.fromkeys((".po", ".pot"), PoDocument),
    **dict.fromkeys((".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"), XliffDocument),
    ".tmx": TmxDocument,
    **dict.fromkeys((".srt", ".vtt"), SubtitleDocument),
    **dict.fromkeys((".html", ".htm", ".xhtml"), HtmlDocument),
    **dict.fromkeys((".md", ".markdown"), MarkdownDocument),
    ".tsv": TsvDocument,
    **dict.fromkeys((".jsonl", ".ndjson"), JsonlDocument),
    **dict.fromkeys((".txt", ".text"), PlainDocument),
}
"""Formats that are one text."""
DOCUMENTS = (*SUFFIXES, *ARCHIVES)
"""The suffixes of all documents."""
_XML = (XliffDocument, TmxDocument)
_HEAD = 2000


@dataclass(frozen=True)
class OpenDocument:
    """A document with its original text and encoding."""

    name: str
    text: str
    encoding: Encoding
    document: Document

    @property
    def units(self) -> Sequence[Unit]:
        return self.document.units

    def written(self, texts: Mapping[int, str], check: Check = unchecked) -> bytes:
        """The bytes of the document with these translations, by the number of their unit. `check` is called
        for each change, and may raise."""
        return self.encoding.encode(apply(self.text, self.document.edits(texts), check))


def open_document(
    path: str | Path, languages: tuple[str, str] = ("src", "tgt")
) -> OpenDocument | OpenArchive:
    with open_binary(path) as file:
        data = file.read(MAX_BYTES + 1)
    return parse_document(data, str(path), languages)


def parse_document(
    data: bytes, name: str, languages: tuple[str, str] = ("src", "tgt"), check: Check = unchecked
) -> OpenDocument | OpenArchive:
    """The document in `data`; its format is told by the suffix of its name. `check` may end the reading."""
    suffix = PurePath(name).suffix.lower()
    if suffix in ADVICE:
        raise UserError(f"{name}: not supported: {ADVICE[suffix]}")
    if suffix not in DOCUMENTS:
        raise UserError(f"{name}: expected a document with one of the suffixes {', '.join(DOCUMENTS)}")
    if len(data) > MAX_BYTES:
        raise UserError(f"{name}: more than {MAX_BYTES >> 20} MiB are too many for a document; split it")
    if suffix in ARCHIVES:
        return OpenArchive(data, name, check)
    parse = SUFFIXES[suffix]
    text, encoding = decode(data, name, is_xml=parse in _XML)
    return OpenDocument(name, text, encoding, parse(text, name, languages, check))


def head_of(data: bytes, name: str) -> str:
    """Some text at the beginning of a document, to tell its language by."""
    if PurePath(name).suffix.lower() not in ARCHIVES:
        return data[:_HEAD].decode("utf-8", "replace")
    found: list[str] = []
    for unit in OpenArchive(data, name).units:
        found.append(unit.source)
        if sum(map(len, found)) > _HEAD:
            break
    return " ".join(found)[:_HEAD]
