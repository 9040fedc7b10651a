"""Inline codes: tags that stand in for them while a text is translated, and the codes again afterwards.

    file        Click <bpt i="1">&lt;b></bpt>here<ept i="1">&lt;/b></ept> &amp; wait
    source      Click <g1>here</g1> & wait
    target      Klicken Sie <g1>hier</g1> & warten Sie
    file        Klicken Sie <bpt i="1">&lt;b></bpt>hier<ept i="1">&lt;/b></ept> &amp; warten Sie

The tags are of a kind that `text/protect.py` carries over. Their names do not occur in the text itself.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Literal

from dragoman.data.documents.unit import State, Unit
from dragoman.text.protect import carried, protect
from dragoman.text.spans import DEFAULT_KINDS

Escape = Callable[[str], str]
"""How text is written in the file."""


@dataclass
class _Part:
    kind: Literal["text", "open", "close", "alone"]
    raw: str
    partner: Hashable = None


class Inline:
    """Collects the content of a unit, part by part."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []

    def text(self, text: str) -> None:
        """Text as it is to be read, without the escapes of the file."""
        if self._parts and self._parts[-1].kind == "text":
            self._parts[-1].raw += text
        elif text:
            self._parts.append(_Part("text", text))

    def alone(self, raw: str) -> None:
        self._parts.append(_Part("alone", raw))

    def open(self, raw: str, partner: Hashable) -> None:
        """A code that ends where `close` is called with the same partner; alone if it never is."""
        self._parts.append(_Part("open", raw, partner))

    def close(self, raw: str, partner: Hashable) -> None:
        self._parts.append(_Part("close", raw, partner))

    @property
    def plain(self) -> str:
        return "".join(part.raw for part in self._parts if part.kind == "text")

    def unit(self, id: str, line: int, escape: Escape, state: State = "new") -> Unit:
        parts = _paired(self._parts)
        before, parts, after = _trimmed(parts, escape)
        name = "g"
        while any(f"<{name}" in part.raw or f"</{name}" in part.raw for part in parts if part.kind == "text"):
            name += "g"
        codes: dict[str, str] = {}
        numbers: dict[Hashable, int] = {}
        source = ""
        for part in parts:
            if part.kind == "text":
                source += part.raw
                continue
            number = numbers.setdefault(part.partner, len(numbers) + 1)
            form = {"open": "<{}{}>", "close": "</{}{}>", "alone": "<{}{}/>"}[part.kind]
            tag = form.format(name, number)
            codes[tag] = part.raw
            source += tag
        return Unit(id, line, source, codes, before, after, state)


def _paired(parts: list[_Part]) -> list[_Part]:
    """The same with partners that nest; what opens or closes without a partner stands alone."""
    result = [_Part(part.kind, part.raw, number) for number, part in enumerate(parts)]
    opened: list[int] = []
    waiting: Counter[Hashable] = Counter()
    for number, part in enumerate(parts):
        if part.kind == "open":
            opened.append(number)
            waiting[part.partner] += 1
        elif part.kind == "close" and not waiting[part.partner]:
            result[number].kind = "alone"
        elif part.kind == "close":
            while parts[opened[-1]].partner != part.partner:
                waiting[parts[opened[-1]].partner] -= 1
                result[opened.pop()].kind = "alone"
            waiting[part.partner] -= 1
            result[number].partner = opened.pop()
    for number in opened:
        result[number].kind = "alone"
    return result


def _trimmed(parts: list[_Part], escape: Escape) -> tuple[str, list[_Part], str]:
    """Without the white space and the codes at both ends: those have nowhere else to go."""
    before, after = "", ""
    first, last = 0, len(parts)
    while first < last:
        head, tail = parts[first], parts[last - 1]
        if head.kind == "text" and (spaces := len(head.raw) - len(head.raw.lstrip())):
            before += escape(head.raw[:spaces])
            parts[first] = _Part("text", head.raw[spaces:])
            first += spaces == len(head.raw)
        elif tail.kind == "text" and (spaces := len(tail.raw) - len(tail.raw.rstrip())):
            after = escape(tail.raw[-spaces:]) + after
            parts[last - 1] = _Part("text", tail.raw[:-spaces])
        elif head.kind == "alone":
            before += head.raw
            first += 1
        elif tail.kind == "alone":
            after = tail.raw + after
            last -= 1
        elif head.kind == "open" and tail.kind == "close" and head.partner == tail.partner:
            before, after = before + head.raw, tail.raw + after
            first, last = first + 1, last - 1
        else:
            break
    return before, parts[first:last], after


def fault(unit: Unit, text: str) -> str | None:
    """What a translation lacks, in a few words; None if nothing."""
    if not text.strip():
        return "the translation is empty"
    if not carried(protect(unit.source, DEFAULT_KINDS), text):
        return "placeholders or inline tags are not those of the source"
    opened: list[str] = []
    for tag in _tags(unit, text):
        if tag.startswith("</"):
            if not opened or opened.pop() != tag.replace("/", ""):
                return "inline tags cross each other"
        elif not tag.endswith("/>"):
            opened.append(tag)
    return "an inline tag is not closed" if opened else None


def filled(unit: Unit, text: str, escape: Escape) -> str:
    """A translation as it is written in the file."""
    pieces = re.split(_pattern(unit), text) if unit.codes else [text]
    written = (unit.codes[piece] if piece in unit.codes else escape(piece) for piece in pieces)
    return f"{unit.before}{''.join(written)}{unit.after}"


def _tags(unit: Unit, text: str) -> list[str]:
    return re.findall(_pattern(unit), text) if unit.codes else []


def _pattern(unit: Unit) -> str:
    return "(" + "|".join(map(re.escape, unit.codes)) + ")"
