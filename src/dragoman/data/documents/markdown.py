"""Markdown: headings, paragraphs, list items, quotes and cells of tables are units; inline syntax is codes.

markdown-it-py finds the blocks, as CommonMark defines them, and tables. Code, front matter, HTML blocks, link
definitions and rules stay as they are. A paragraph that is translated comes out as one line, which reads the
same; two spaces or a backslash at the end of a line still break it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dragoman.data.documents.inline import written_unit
from dragoman.data.documents.markdown_inline import escape_markdown, fold_label, inline_of
from dragoman.data.documents.unit import Check, Edit, Unit, unchecked

_NEWLINE = re.compile(r"\r\n?|\n")
_QUOTES = re.compile(r"(?:[ \t]*>)*[ \t]*")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+")
_HASHES = re.compile(r"#{1,6}[ \t]+")
_TASK = re.compile(r"\[[ xX]\][ \t]+")
_FOOTNOTE = re.compile(r"\[\^[^\]\n]{1,100}\]:[ \t]+")
_CELL = re.compile(r"(?:[^|\\`]|\\.|`[^`|]*`|`)+")


@dataclass
class _Block:
    """Lines that are one unit: where their text begins and ends in the file."""

    spans: list[tuple[int, int]] = field(default_factory=list)
    line: int = 0


class MarkdownDocument:
    def __init__(self, text: str, _where: str, _languages: tuple[str, str], check: Check = unchecked) -> None:
        self._text, self._check = text, check
        check(text.count("\n") + 1)
        breaks = list(_NEWLINE.finditer(text))
        starts = [0, *(found.end() for found in breaks)]
        ends = [*(found.start() for found in breaks), len(text)]
        self._lines = list(zip(starts, ends, strict=True))
        self._first = _front_matter(text, self._lines)
        """Number of lines of the front matter."""
        self.units: list[Unit] = []
        self._places: list[tuple[int, int]] = []
        self._cells: set[int] = set()
        """Units that are cells of tables."""
        self._block = _Block()
        body = starts[self._first] if self._first < len(starts) else len(text)
        tokens, references = _blocks(text[body:], check)
        self._labels = frozenset(map(fold_label, references))
        in_table = False
        for number, token in enumerate(tokens):
            if token.type in ("table_open", "table_close"):
                in_table = token.type == "table_open"
            elif token.type == "tr_open":
                self._row(self._first + token.map[0])
            elif token.type == "inline" and not in_table:
                around, block = tokens[number - 2].type if number > 1 else "", tokens[number - 1]
                is_heading = block.type == "heading_open" and block.markup[0] == "#"
                leading = _TASK if around == "list_item_open" else _FOOTNOTE
                self._paragraph(self._first + token.map[0], token.content, is_heading, leading)

    def _line(self, number: int) -> str:
        start, end = self._lines[number]
        return self._text[start:end]

    def _paragraph(self, first: int, content: str, is_heading: bool, leading: re.Pattern[str]) -> None:
        """`content` is what markdown-it-py has left of the lines, without marks before and after it. What
        `leading` matches at its beginning stays."""
        for number, part in enumerate(content.split("\n"), start=first):
            line, bare = self._line(number), part.strip()
            if is_heading:
                hashes = _HASHES.search(line)
                start = line.find(bare, hashes.end() if hashes else 0)
            else:
                start = len(line.rstrip()) - len(bare)
            if number == first and (mark := leading.match(bare)):
                start, bare = start + mark.end(), bare[mark.end() :]
            breaks = not is_heading and line.endswith(("  ", "\\"))
            self._extend(number, start, bare.removesuffix("\\") if breaks else bare)
            if breaks:
                self._finish()
        self._finish()

    def _row(self, number: int) -> None:
        line = self._line(number)
        quotes = _QUOTES.match(line)
        start = quotes.end() if quotes else 0
        while item := _ITEM.match(line, start):  # a table may begin in an item of a list
            start = item.end()
        for cell in _CELL.finditer(line, start):
            text = cell[0].strip()
            if text:
                self._extend(number, line.index(text, cell.start()), text)
                self._finish(is_cell=True)

    def _extend(self, number: int, start: int, text: str) -> None:
        if bare := text.rstrip():
            at = self._lines[number][0] + start
            self._block.line = self._block.line or number + 1
            self._block.spans.append((at, at + len(bare)))

    def _finish(self, is_cell: bool = False) -> None:
        block, self._block = self._block, _Block()
        if not block.spans:
            return
        joined = " ".join(self._text[start:end] for start, end in block.spans)
        inline = inline_of(joined, self._labels, self._check)
        if any(char.isalpha() for char in inline.plain):
            if is_cell:
                self._cells.add(len(self.units))
            self.units.append(inline.unit(str(len(self.units) + 1), block.line, escape_markdown))
            self._places.append((block.spans[0][0], block.spans[-1][1]))

    def edits(self, texts: Mapping[int, str]) -> Iterator[Edit]:
        for number, text in texts.items():
            unit = self.units[number]
            if text != unit.source:
                written = written_unit(unit, text, escape_markdown)
                if number in self._cells:
                    written = re.sub(r"(?<!\\)\|", r"\\|", written)
                yield Edit(*self._places[number], _not_a_block(written))


def _blocks(text: str, check: Check) -> tuple[list[Any], list[str]]:
    """The blocks of a text, and the labels of its link definitions. `check` is called for each block."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table").disable("inline")

    def look(*_: object) -> bool:
        check(0)
        return False

    parser.block.ruler.before("table", "check", look)
    environment: dict[str, Any] = {}
    tokens = parser.parse(text, environment)
    return tokens, list(environment.get("references", {}))


def _front_matter(text: str, lines: list[tuple[int, int]]) -> int:
    """The number of lines from one `---` at the very beginning to the next."""
    if text[slice(*lines[0])].rstrip() == "---":
        for number, (start, end) in enumerate(lines[1:], start=2):
            if text[start:end].rstrip() in ("---", "..."):
                return number
    return 0


def _not_a_block(text: str) -> str:
    """Escape a translation that starts like a heading, an item, a quote or a rule."""
    if number := re.match(r"\d{1,9}(?=[.)](?:\s|$))", text):
        return f"{number[0]}\\{text[number.end() :]}"
    return f"\\{text}" if re.match(r"(?:#{1,6}|[-+*])(?:\s|$)|>|(?:=+|-+)\s*$|```|~~~", text) else text
