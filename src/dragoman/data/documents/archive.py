"""Office documents and e-books: zip archives of XML. The text in them is translated; all else is kept.

| file | parts with text |
|---|---|
| DOCX | document, headers, footers, notes |
| PPTX | slides and their notes |
| ODT, ODP | content.xml, and styles.xml for headers and footers |
| EPUB | chapters (XHTML), and the table of contents (NCX) |

Nothing is unpacked to a disk. Archives from strangers are limited in parts and bytes, and must be whole.
"""

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from dragoman.data.documents.encoding import Encoding, decode
from dragoman.data.documents.html import HtmlDocument
from dragoman.data.documents.inline import Inline, written_unit
from dragoman.data.documents.runs import RunDocument
from dragoman.data.documents.tree import Node, collect, escape_xml, parse_tree
from dragoman.data.documents.unit import Check, Document, Edit, Unit, apply, unchecked
from dragoman.errors import UserError

MOST_PARTS = 10_000
MOST_BYTES = 256 << 20
"""Maximum size of all parts together, unpacked."""
MOST_EXPANSION = 200
"""Times that a part with text may be larger than what is packed."""
_SMALL = 1 << 20
"""Bytes that a part may always have."""

ParsePart = Callable[[str, str, Check], Document]


class ParagraphDocument:
    """Paragraphs with text and tags mixed, as OpenDocument has them; or any elements that hold text."""

    def __init__(self, text: str, where: str, names: Sequence[str], check: Check = unchecked) -> None:
        self._text, self._names, self._check = text, names, check
        self.units: list[Unit] = []
        self._places: list[tuple[int, int]] = []
        for paragraph in parse_tree(text, where, check).below(*names):
            if not paragraph.empty:
                self._paragraph(paragraph)

    def _paragraph(self, paragraph: Node) -> None:
        """A paragraph that contains others (in a footnote) is split around them."""
        stretch = Node(paragraph.name, {}, paragraph.start, paragraph.line)
        start = paragraph.open_end
        for child in paragraph.children:
            if isinstance(child, Node) and next(child.below(*self._names), None) is not None:
                self._stretch(stretch, start, child.start)
                stretch, start = Node(paragraph.name, {}, child.end, child.line), child.end
            else:
                stretch.children.append(child)
        self._stretch(stretch, start, paragraph.close_start)

    def _stretch(self, node: Node, start: int, end: int) -> None:
        inline = Inline(self._check)
        collect(self._text, node, inline, {"text:span": None, "text:a": None})
        if any(map(str.isalpha, inline.plain)):
            self.units.append(inline.unit(str(len(self.units) + 1), node.line, escape_xml))
            self._places.append((start, end))

    def edits(self, texts: Mapping[int, str]) -> Iterator[Edit]:
        for number, text in texts.items():
            if text != self.units[number].source:
                yield Edit(*self._places[number], written_unit(self.units[number], text, escape_xml))


class ChapterDocument(HtmlDocument):
    """XHTML, which knows no entities but those of XML."""

    def edits(self, texts: Mapping[int, str]) -> Iterator[Edit]:
        for edit in super().edits(texts):
            yield replace(edit, new=edit.new.replace("&nbsp;", "&#160;"))


def _word(text: str, where: str, check: Check) -> Document:
    return RunDocument(text, where, "w:", check)


def _slide(text: str, where: str, check: Check) -> Document:
    return RunDocument(text, where, "a:", check)


def _open_document(text: str, where: str, check: Check) -> Document:
    return ParagraphDocument(text, where, ("text:p", "text:h"), check)


def _chapter(text: str, where: str, check: Check) -> Document:
    return ChapterDocument(text, where, ("", ""), check)


def _contents(text: str, where: str, check: Check) -> Document:
    return ParagraphDocument(text, where, ("text", "ncx:text"), check)


ARCHIVES: dict[str, dict[str, ParsePart]] = {
    ".docx": {r"word/(document|header\d*|footer\d*|footnotes|endnotes|comments)\.xml": _word},
    ".pptx": {r"ppt/(slides/slide|notesSlides/notesSlide)\d+\.xml": _slide},
    ".odt": {r"(content|styles)\.xml": _open_document},
    ".odp": {r"(content|styles)\.xml": _open_document},
    ".epub": {r".*\.(xhtml|html|htm)": _chapter, r".*\.ncx": _contents},
}
"""Parts with text and their parsers, by file suffix."""
ADVICE = {
    ".pdf": "a PDF has places of letters, not paragraphs; convert it to DOCX or ODT, or to plain text",
    ".doc": "save it as DOCX", ".ppt": "save it as PPTX", ".rtf": "save it as DOCX or ODT",
    ".xlsx": "save its sheet as .tsv", ".ods": "save its sheet as .tsv", ".pages": "export it as DOCX",
    ".mobi": "convert it to EPUB",
}  # fmt: skip
"""Advice for documents that are not supported."""


@dataclass(frozen=True)
class _Part:
    name: str
    text: str
    encoding: Encoding
    document: Document
    first: int
    """The number of its first unit."""


class OpenArchive:
    """An archive with the parts that have text."""

    def __init__(self, data: bytes, name: str, check: Check = unchecked) -> None:
        self.name = name
        kinds = ARCHIVES[PurePath(name).suffix.lower()]
        self._contents = _read(data, name, check)
        self._parts: list[_Part] = []
        self.units: list[Unit] = []
        for info, content in self._contents:
            parse = next((own for path, own in kinds.items() if re.fullmatch(path, info.filename)), None)
            if parse is not None:
                self._add(info, content, parse, check)
        if not self._parts:
            raise UserError(f"{name}: no part with text in it; is it what its suffix says?")

    def _add(self, info: zipfile.ZipInfo, content: bytes, parse: ParsePart, check: Check) -> None:
        where = f"{self.name}/{info.filename}"
        if len(content) > max(_SMALL, MOST_EXPANSION * info.compress_size):
            raise UserError(f"{where}: it unpacks to more than {MOST_EXPANSION} times its size: refused")
        text, encoding = decode(content, where, is_xml=True)
        document = parse(text, where, check)
        self._parts.append(_Part(info.filename, text, encoding, document, len(self.units)))
        self.units += [replace(unit, id=f"{info.filename}#{unit.id}") for unit in document.units]

    def written(self, texts: Mapping[int, str], check: Check = unchecked) -> bytes:
        """The archive with these translations; parts without any stay byte for byte as they are."""
        changed: dict[str, bytes] = {}
        for part in self._parts:
            last = part.first + len(part.document.units)
            own = {number - part.first: text for number, text in texts.items() if part.first <= number < last}
            if own:
                changed[part.name] = part.encoding.encode(apply(part.text, part.document.edits(own), check))
        result = io.BytesIO()
        with zipfile.ZipFile(result, "w") as archive:
            for info, content in self._contents:
                check(0)
                archive.writestr(_like(info), changed.get(info.filename, content), info.compress_type)
        return result.getvalue()


def _like(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """A new entry with the name, date and permissions of another."""
    new = zipfile.ZipInfo(info.filename, info.date_time)
    new.external_attr, new.create_system = info.external_attr, info.create_system
    new.compress_type, new.comment = info.compress_type, info.comment
    return new


def _read(data: bytes, name: str, check: Check) -> list[tuple[zipfile.ZipInfo, bytes]]:
    """All parts, unpacked in memory."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            _refuse_traps(infos, name)
            found = []
            for info in infos:
                check(1)
                with archive.open(info) as file:
                    found.append((info, file.read(info.file_size + 1)))
            return found
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        raise UserError(f"{name}: not a whole zip archive, as such a file should be ({error})") from None


def _refuse_traps(infos: Sequence[zipfile.ZipInfo], name: str) -> None:
    if len(infos) > MOST_PARTS:
        raise UserError(f"{name}: more than {MOST_PARTS:,} parts in the archive: refused")
    if sum(info.file_size for info in infos) > MOST_BYTES:
        raise UserError(f"{name}: its parts unpack to more than {MOST_BYTES >> 20} MiB: refused")
    if len({info.filename for info in infos}) < len(infos):
        raise UserError(f"{name}: two parts of the archive have the same name: refused")
    for info in infos:
        if info.flag_bits & 1:
            raise UserError(f"{name}: it is encrypted; save it without a password")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UserError(f"{name}: a part is packed in a way that such files do not use: refused")
