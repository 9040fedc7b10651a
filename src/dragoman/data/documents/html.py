"""HTML: the text between two tags of blocks is a unit, with the inline tags in it as codes.

Scripts, styles, preformatted text and what says `translate="no"` stay as they are; so do attributes. White
space is what a browser makes of it. The scanner goes through the text once and takes any of it.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from dragoman.data.documents.inline import Inline, filled
from dragoman.data.documents.unit import Edit, Lines, Unit

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
_MOST_FAILURES = 100
"""Tags that go on to the end of the file without ending. After so many, `<` is a character: a file
of nothing else would take time without end."""
_NAME = re.compile(r"</?([A-Za-z][A-Za-z0-9:-]*)")
_MARKS = re.compile(r"""[<>]|=[ \t\r\n\f]*["']""")
_SPACES = re.compile(r"[ \t\r\n\f]+")
_NOT_TRANSLATED = re.compile(r"""\stranslate\s*=\s*["']?no\b|\sclass\s*=\s*["'][^"']*\bnotranslate\b""", re.I)

Kind = Literal["text", "open", "close", "alone", "block"]


@dataclass(frozen=True)
class Token:
    kind: Kind
    start: int
    end: int
    name: str = ""


def tokens(text: str) -> Iterator[Token]:
    """The whole text, without gaps."""
    at = begun = 0
    unclosed: Counter[str] = Counter()
    while (at := text.find("<", at)) >= 0:
        token = _markup(text, at, unclosed)
        if token is None:
            at += 1
            continue
        if begun < at:
            yield Token("text", begun, at)
        yield token
        at = begun = token.end
    if begun < len(text):
        yield Token("text", begun, len(text))


def _markup(text: str, at: int, unclosed: Counter[str]) -> Token | None:
    """The tag, comment or kept element that begins here; None where `<` is only a character."""
    if text.startswith("<!--", at):
        end = text.find("-->", at + 4) if "<!--" not in unclosed else -1
        if end < 0:
            unclosed["<!--"] += 1
            return None
        return Token("alone", at, end + 3)
    if text.startswith(("<!", "<?"), at):
        end = text.find(">", at)
        return None if end < 0 else Token("block", at, end + 1)
    named = _NAME.match(text, at)
    end = None if named is None else _tag_end(text, named.end(), unclosed)
    if named is None or end is None:
        return None
    name = named[1].lower()
    inline = name in _INLINE
    if text[at + 1] == "/":
        return Token("close" if inline else "block", at, end, name)
    tag = text[at:end]
    if name in VOID or tag.endswith("/>"):
        return Token("alone" if inline else "block", at, end, name)
    if (name in _KEPT or _NOT_TRANSLATED.search(tag)) and name not in unclosed:
        close = re.compile(rf"</{re.escape(name)}\s*>", re.I).search(text, end)
        if close is not None:
            return Token("alone" if inline else "block", at, close.end(), name)
        unclosed[name] += 1
    return Token("open" if inline else "block", at, end, name)


def _tag_end(text: str, at: int, unclosed: Counter[str]) -> int | None:
    """Where a tag ends; `>` and `<` in quotes do not count."""
    if unclosed["<"] > _MOST_FAILURES:
        return None
    while found := _MARKS.search(text, at):
        if found[0] == ">":
            return found.end()
        if found[0] == "<":
            return None
        at = text.find(found[0][-1], found.end()) + 1
        if not at:
            break
    unclosed["<"] += 1
    return None


class HtmlDocument:
    def __init__(self, text: str, _where: str, _languages: tuple[str, str]) -> None:
        self._text = text
        self._lines = Lines(text)
        self.units: list[Unit] = []
        self._places: list[tuple[int, int]] = []
        run: list[Token] = []
        for token in tokens(text):
            if token.kind == "block":
                self._add(run)
                run = []
            else:
                run.append(token)
        self._add(run)

    def _add(self, run: list[Token]) -> None:
        """What lies between two blocks, without the white space around it."""
        if not any(t.kind == "text" and not self._text[t.start : t.end].isspace() for t in run):
            return
        raw = self._text[run[0].start : run[-1].end]
        start = run[0].start + len(raw) - len(raw.lstrip(" \t\r\n\f"))
        end = run[-1].end - (len(raw) - len(raw.rstrip(" \t\r\n\f")))
        inline = Inline()
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
                yield Edit(*self._places[number], filled(self.units[number], text, escape_html))


def escape_html(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\u00a0", "&nbsp;")
