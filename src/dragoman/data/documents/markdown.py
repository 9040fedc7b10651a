"""Markdown: headings, paragraphs, list items, quotes and cells of tables are units; inline syntax is codes.

Code, front matter, HTML blocks, link definitions and rules stay as they are. A paragraph that is translated
comes out as one line, which reads the same; two spaces or a backslash at the end of a line still break it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dragoman.data.documents.inline import filled
from dragoman.data.documents.markdown_inline import escape_markdown, fold_label, inline_of
from dragoman.data.documents.unit import Check, Edit, Unit, lines_of, unchecked

_FENCE = re.compile(r"[ \t>]*(?:[-*+]\s+|\d{1,9}[.)]\s+)?(`{3,}|~{3,})")
_PREFIX = re.compile(r"(?:[ \t]{0,3}>[ \t]?)*[ \t]*")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]+(?:\[[ xX]\][ \t]+)?|$)")
_HEADING = re.compile(r"#{1,6}(?:[ \t]+|$)")
_RULE = re.compile(r"(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,}|=+[ \t]*|-+[ \t]*)$")
_DEFINITION = re.compile(r"\[[^\]\n]{1,500}\]:")
_HTML = re.compile(r"<(?:!--|[!?/]|[A-Za-z])")
_INLINE_HTML = re.compile(
    r"</?(?:a|abbr|b|br|cite|code|del|em|i|img|ins|kbd|mark|q|s|small|span|strong|sub|sup|u)\b"
)
_CELL_RULE = re.compile(r":?-+:?")


@dataclass
class _Block:
    """Lines that are one unit: where their text begins and ends in the file."""

    spans: list[tuple[int, int]] = field(default_factory=list)
    line: int = 0


class MarkdownDocument:
    def __init__(self, text: str, _where: str, _languages: tuple[str, str], check: Check = unchecked) -> None:
        self._text, self._check = text, check
        lines = lines_of(text, check)
        found = re.findall(r"^[ \t>]{0,20}\[([^\]\n]{1,500})\]:", text, re.MULTILINE)
        self._labels = frozenset(map(fold_label, found))
        self.units: list[Unit] = []
        self._places: list[tuple[int, int]] = []
        self._block = _Block()
        self._fence = ""
        self._kept = ""  # why lines stay: front matter, comment, html, table
        self._in_list = False
        self._before = ""  # the line before, to know an indented block of code
        at = 0
        for number, line in enumerate(lines, start=1):
            following = lines[number] if number < len(lines) else ""
            self._line(number, at, line.removesuffix("\r"), following.strip())
            self._before = line.strip()
            at += len(line) + 1
        self._finish()

    def _line(self, number: int, at: int, line: str, following: str) -> None:
        if self._stays(number, line):
            self._finish()
            return
        prefix = _PREFIX.match(line)
        start = prefix.end() if prefix else 0
        while item := _ITEM.match(line, start):  # a list in a list in one line
            self._finish()
            start = item.end()
        heading = _HEADING.match(line, start)
        body = line[start:]
        if self._kept == "table" or ("|" in body and "|" in following and _is_table_rule(following)):
            self._finish()
            self._kept = "table"
            if not _is_table_rule(body):
                self._cells(number, at + start, body)
            return
        if heading:
            self._finish()
            start = heading.end()
            body = _without_closing_hashes(line[start:])
        self._extend(number, at + start, body)
        if heading or line.endswith(("  ", "\\")):
            self._finish()

    def _stays(self, number: int, line: str) -> bool:
        """Whether a line has nothing to translate; what it begins or ends is remembered."""
        bare = line.strip()
        if self._fence:
            if bare.strip(">` ~\t") == "" and self._fence in bare:
                self._fence = ""
            return True
        if self._kept in ("---", "-->"):
            self._kept = "" if self._kept in bare else self._kept
            return True
        if number == 1 and bare == "---":
            self._kept = "---"
            return True
        body = bare.lstrip("> \t")
        if not body:
            self._kept = ""
            return True
        if self._kept == "html":
            return True
        if fence := _FENCE.match(line):
            self._fence = fence[1]
            return True
        if (
            not self._block.spans
            and self._before == ""
            and line.startswith(("    ", "\t"))
            and not _ITEM.match(body)
        ):
            return not self._in_list
        if body.startswith("<!--"):
            self._kept = "" if "-->" in body else "-->"
            return True
        if _HTML.match(body) and not _INLINE_HTML.match(body) and "://" not in body.partition(">")[0]:
            self._kept = "html"
            return True
        self._in_list = bool(_ITEM.match(body)) or (self._in_list and line.startswith((" ", "\t")))
        return bool(_RULE.match(body) or _DEFINITION.match(body))

    def _extend(self, number: int, start: int, body: str) -> None:
        bare = body.rstrip(" \t")
        bare = bare.removesuffix("\\") if body.endswith("\\") else bare
        if bare.strip():
            lead = len(bare) - len(bare.lstrip())
            self._block.line = self._block.line or number
            self._block.spans.append((start + lead, start + len(bare.rstrip())))

    def _cells(self, number: int, start: int, body: str) -> None:
        for cell in re.finditer(r"(?:[^|\\`]|\\.|`[^`|]*`|`)+", body):
            self._extend(number, start + cell.start(), cell[0])
            self._finish()

    def _finish(self) -> None:
        block, self._block = self._block, _Block()
        if not block.spans:
            return
        joined = " ".join(self._text[start:end] for start, end in block.spans)
        inline = inline_of(joined, self._labels, self._check)
        if any(char.isalpha() for char in inline.plain):
            self.units.append(inline.unit(str(len(self.units) + 1), block.line, escape_markdown))
            self._places.append((block.spans[0][0], block.spans[-1][1]))

    def edits(self, texts: Mapping[int, str]) -> Iterator[Edit]:
        for number, text in texts.items():
            unit = self.units[number]
            if text != unit.source:
                written = filled(unit, text, escape_markdown)
                yield Edit(*self._places[number], _not_a_block(written))


def _is_table_rule(line: str) -> bool:
    """`|---|:--:|`, with or without the outer bars."""
    cells = line.rstrip(" \t").removeprefix("|").removesuffix("|").split("|")
    return all(_CELL_RULE.fullmatch(cell.strip(" \t")) for cell in cells)


def _without_closing_hashes(heading: str) -> str:
    bare = heading.rstrip(" \t")
    title = bare.rstrip("#")
    return title.rstrip(" \t") if title != bare and title.endswith((" ", "\t")) else heading


def _not_a_block(text: str) -> str:
    """A translation that begins like a heading, an item or a quote is none."""
    if number := re.match(r"\d{1,9}(?=[.)](?:\s|$))", text):
        return f"{number[0]}\\{text[number.end() :]}"
    return f"\\{text}" if re.match(r"(?:#{1,6}|[-+*])(?:\s|$)|>", text) else text
