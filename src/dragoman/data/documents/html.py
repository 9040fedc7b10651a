"""HTML: the text between two tags of blocks is a unit, with the inline tags in it as codes.

Scripts, styles, preformatted text and what says `translate="no"` stay as they are; so do attributes. White
space is what a browser makes of it. The scanner takes any text, in time in proportion to its length: what was
looked for in vain, or looked at in vain, is remembered and not looked at again.
"""

import html
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from dragoman.data.documents.inline import Inline, written_unit
from dragoman.data.documents.unit import Check, Edit, Lines, Unit, unchecked

_INLINE_NAMES = """
a abbr acronym b bdi bdo big br cite code data del dfn em font i img ins kbd map mark math meter object output
picture progress q ruby rb rp rt s samp small span strike strong sub sup svg time tt u var wbr
"""
_INLINE = frozenset(_INLINE_NAMES.split())
VOID = frozenset({
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track"),
    "wbr",
})  # fmt: skip
_KEPT = frozenset({
    *("script", "style", "pre", "textarea", "code", "kbd", "samp", "var", "svg", "math", "template"),
    *("iframe", "canvas"),
})  # fmt: skip
_NAME = re.compile(r"</?([A-Za-z][A-Za-z0-9:-]*)")
_CLOSING = re.compile(r"</([A-Za-z][A-Za-z0-9:-]*)\s*>")
_MARKS = re.compile(r"""[<>]|=[ \t\r\n\f]*["']""")
_SPACES = re.compile(r"[ \t\r\n\f]+")
_NOT_TRANSLATED = re.compile(r"""\stranslate\s*=\s*["']?no\b|\sclass\s*=\s*["'][^"']*\bnotranslate\b""", re.I)

TokenKind = Literal["text", "open", "close", "alone", "block"]


@dataclass(frozen=True, slots=True)
class HtmlToken:
    kind: TokenKind
    start: int
    end: int
    name: str = ""


def tokens(text: str, check: Check) -> Iterator[HtmlToken]:
    """The whole text, without gaps."""
    scanner = _Scanner(text, check)
    at = begun = 0
    while (at := text.find("<", at)) >= 0:
        token = scanner.markup(at)
        if token is None:
            at += 1
            continue
        if begun < at:
            yield HtmlToken("text", begun, at)
        yield token
        at = begun = token.end
    if begun < len(text):
        yield HtmlToken("text", begun, len(text))


class _Scanner:
    def __init__(self, text: str, check: Check) -> None:
        self._text, self._check = text, check
        self._missing: set[str] = set()  # what does not come any more
        self._in_vain: set[int] = set()  # marks inside of tags from which no end was found

    def markup(self, at: int) -> HtmlToken | None:
        """The tag, comment or kept element that begins here; None where `<` is only a character."""
        text = self._text
        if text.startswith("<!--", at):
            end = self._find("-->", at + 4)
            return None if end < 0 else HtmlToken("alone", at, end + 3)
        if text.startswith(("<!", "<?"), at):
            end = self._find(">", at)
            return None if end < 0 else HtmlToken("block", at, end + 1)
        named = _NAME.match(text, at)
        end = None if named is None else self._tag_end(named.end())
        if named is None or end is None:
            return None
        name = named[1].lower()
        inline = name in _INLINE
        if text[at + 1] == "/":
            return HtmlToken("close" if inline else "block", at, end, name)
        tag = text[at:end]
        if name in VOID or tag.endswith("/>"):
            return HtmlToken("alone" if inline else "block", at, end, name)
        if name in _KEPT or _NOT_TRANSLATED.search(tag):
            starts, ends = self._closings.get(name, ([], []))
            number = bisect_left(starts, end)
            if number < len(ends):
                return HtmlToken("alone" if inline else "block", at, ends[number], name)
        return HtmlToken("open" if inline else "block", at, end, name)

    def _find(self, mark: str, at: int) -> int:
        found = -1 if mark in self._missing else self._text.find(mark, at)
        if found < 0:
            self._missing.add(mark)
        return found

    @cached_property
    def _closings(self) -> dict[str, tuple[list[int], list[int]]]:
        """Start and end of the closing tags by name."""
        found: dict[str, tuple[list[int], list[int]]] = {}
        for tag in _CLOSING.finditer(self._text):
            self._check(1)
            starts, ends = found.setdefault(tag[1].lower(), ([], []))
            starts.append(tag.start())
            ends.append(tag.end())
        return found

    def _tag_end(self, at: int) -> int | None:
        """The end of a tag; `>` and `<` in quotes do not count."""
        passed: list[int] = []
        while (found := _MARKS.search(self._text, at)) and found.start() not in self._in_vain:
            if found[0] == ">":
                return found.end()
            passed.append(found.start())
            if found[0] == "<":
                break
            at = self._text.find(found[0][-1], found.end()) + 1
            if not at:
                break
        self._check(len(passed))
        self._in_vain.update(passed)
        return None


class HtmlDocument:
    def __init__(self, text: str, _where: str, _languages: tuple[str, str], check: Check = unchecked) -> None:
        self._text, self._check = text, check
        self._lines = Lines(text)
        self.units: list[Unit] = []
        self._places: list[tuple[int, int]] = []
        run: list[HtmlToken] = []
        for token in tokens(text, check):
            check(1)
            if token.kind == "block":
                self._add(run)
                run = []
            else:
                run.append(token)
        self._add(run)

    def _add(self, run: list[HtmlToken]) -> None:
        """Add the text between two blocks, without surrounding white space."""
        if not any(t.kind == "text" and not self._text[t.start : t.end].isspace() for t in run):
            return
        raw = self._text[run[0].start : run[-1].end]
        start = run[0].start + len(raw) - len(raw.lstrip(" \t\r\n\f"))
        end = run[-1].end - (len(raw) - len(raw.rstrip(" \t\r\n\f")))
        inline = Inline(self._check)
        for token in run:
            piece = self._text[max(token.start, start) : min(token.end, end)]
            if token.kind == "text":
                inline.text(_SPACES.sub(" ", html.unescape(piece)))
            elif token.kind == "open":
                inline.open(piece, token.name)
            elif token.kind == "close":
                inline.close(piece, token.name)
            else:
                inline.alone(piece)
        unit = inline.unit(str(len(self.units) + 1), self._lines.number(start), escape_html)
        if any(char.isalpha() for char in inline.plain):
            self.units.append(unit)
            self._places.append((start, end))

    def edits(self, texts: Mapping[int, str]) -> Iterator[Edit]:
        for number, text in texts.items():
            if text != self.units[number].source:
                yield Edit(*self._places[number], written_unit(self.units[number], text, escape_html))


def escape_html(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\u00a0", "&nbsp;")
