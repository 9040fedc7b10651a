r"""Paragraphs of Word and PowerPoint: text in runs, each with a format of its own.

    <w:p><w:pPr/><w:r><w:t>Click </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>here</w:t></w:r></w:p>

The format that most of a paragraph has is that of plain text; runs with another one are codes. Runs of the
same format that stand side by side are one. What is in a run beside text (tabs, breaks, pictures, fields) and
what is between runs (bookmarks) stands alone.

A translation is put together with marks that no XML can have, `\0f2\0` … `\0/\0` for a format and `\0t…\0`
for text. Then every text becomes a run of the innermost format that is open.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dragoman.data.documents.inline import Inline, written_unit
from dragoman.data.documents.tree import Node, escape_xml, parse_tree
from dragoman.data.documents.unit import Check, Edit, Unit, unchecked

_MARK = re.compile("\0([ft/])([^\0]*)\0")
_AROUND = ("hyperlink", "ins", "smartTag", "fldSimple", "moveTo")
_NOTHING = ("proofErr", "lastRenderedPageBreak")
"""Notes of the program for itself, which would only be in the way."""


@dataclass(frozen=True)
class _Piece:
    """Part of a paragraph: text in a format, or a code as it is written."""

    text: str = ""
    format: str = ""
    raw: str = ""
    kind: str = "text"


class RunDocument:
    """A part of a Word or PowerPoint file. `prefix` of its elements: `w:` or `a:`."""

    def __init__(self, text: str, where: str, prefix: str, check: Check = unchecked) -> None:
        self._text, self._prefix, self._check = text, prefix, check
        self.units: list[Unit] = []
        self._places: list[tuple[int, int]] = []
        self._formats: list[dict[int, str]] = []
        for paragraph in parse_tree(text, where, check).below(f"{prefix}p"):
            self._paragraph(paragraph)

    def _raw(self, node: Node) -> str:
        return self._text[node.start : node.end]

    def _paragraph(self, paragraph: Node) -> None:
        """A paragraph that contains others (in a text box) is split around them."""
        stretch: list[Node] = []
        for child in paragraph.children:
            if isinstance(child, str):
                continue
            name = child.name.removeprefix(self._prefix)
            if name in ("pPr", "endParaRPr") or next(child.below(f"{self._prefix}p"), None) is not None:
                self._stretch(stretch)
                stretch = []
            else:
                stretch.append(child)
        self._stretch(stretch)

    def _stretch(self, nodes: list[Node]) -> None:
        pieces = _merged([piece for node in nodes for piece in self._pieces(node)])
        written = [piece for piece in pieces if piece.kind == "text"]
        if not any(map(str.isalpha, "".join(piece.text for piece in written))):
            return
        sizes: Counter[str] = Counter()
        for piece in written:
            sizes[piece.format] += len(piece.text)
        usual = sizes.most_common(1)[0][0]
        formats = {0: usual}
        inline = Inline(self._check)
        for number, piece in enumerate(pieces, start=1):
            if piece.kind == "text" and piece.format != usual:
                formats[number] = piece.format
                inline.open(f"\0f{number}\0", ("format", number))
                inline.text(piece.text)
                inline.close("\0/\0", ("format", number))
            elif piece.kind == "text":
                inline.text(piece.text)
            elif piece.kind == "open":
                inline.open(piece.raw, piece.text)
            else:
                (inline.close if piece.kind == "close" else inline.alone)(piece.raw, *_partner(piece))
        self.units.append(inline.unit(str(len(self.units) + 1), nodes[0].line, _marked))
        self._places.append((nodes[0].start, nodes[-1].end))
        self._formats.append(formats)

    def _pieces(self, node: Node) -> Iterator[_Piece]:
        name = node.name.removeprefix(self._prefix)
        if name == "r":
            yield from self._run(node)
        elif name in _AROUND and not node.empty:
            key = str(node.start)
            yield _Piece(key, raw=self._text[node.start : node.open_end], kind="open")
            for child in node.children:
                if not isinstance(child, str):
                    yield from self._pieces(child)
            yield _Piece(key, raw=self._text[node.close_start : node.end], kind="close")
        elif name not in _NOTHING:
            yield _Piece(raw=self._raw(node), kind="alone")

    def _run(self, run: Node) -> Iterator[_Piece]:
        style = run.first(f"{self._prefix}rPr")
        format = self._raw(style) if style is not None else ""
        for child in run.children:
            if isinstance(child, str) or child is style:
                continue
            name = child.name.removeprefix(self._prefix)
            if name == "t":
                text = "".join(part for part in child.children if isinstance(part, str))
                yield _Piece(text, format)
            elif name not in _NOTHING:
                raw = f"<{self._prefix}r>{format}{self._raw(child)}</{self._prefix}r>"
                yield _Piece(raw=raw, kind="alone")

    def edits(self, texts: Mapping[int, str]) -> Iterator[Edit]:
        for number, text in texts.items():
            unit = self.units[number]
            if text != unit.source:
                marked = written_unit(unit, text.replace("\0", ""), _marked)
                yield Edit(*self._places[number], self._rendered(marked, self._formats[number]))

    def _rendered(self, marked: str, formats: Mapping[int, str]) -> str:
        parts: list[str] = []
        opened = [formats[0]]
        at = 0
        for mark in _MARK.finditer(marked):
            parts.append(marked[at : mark.start()])
            at = mark.end()
            if mark[1] == "f":
                opened.append(formats[int(mark[2])])
            elif mark[1] == "/":
                opened.pop()
            elif mark[2]:
                parts.append(self._written(mark[2], opened[-1]))
        return "".join([*parts, marked[at:]])

    def _written(self, text: str, format: str) -> str:
        space = ' xml:space="preserve"' if self._prefix == "w:" else ""
        prefix = self._prefix
        return f"<{prefix}r>{format}<{prefix}t{space}>{escape_xml(text)}</{prefix}t></{prefix}r>"


def _partner(piece: _Piece) -> tuple[str, ...]:
    return (piece.text,) if piece.kind == "close" else ()


def _marked(text: str) -> str:
    return f"\0t{text}\0" if text else ""


def _merged(pieces: list[_Piece]) -> list[_Piece]:
    """Texts of the same format that follow one another are one."""
    found: list[_Piece] = []
    waiting: list[str] = []
    for number, piece in enumerate(pieces):
        if piece.kind != "text":
            found.append(piece)
            continue
        waiting.append(piece.text)
        following = pieces[number + 1] if number + 1 < len(pieces) else None
        if following is None or following.kind != "text" or following.format != piece.format:
            found.append(_Piece("".join(waiting), piece.format))
            waiting = []
    return found
