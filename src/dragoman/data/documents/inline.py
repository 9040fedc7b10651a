"""Inline codes: tags that stand in for them while a text is translated, and the codes again afterwards.

    file        Click <bpt i="1">&lt;b></bpt>here<ept i="1">&lt;/b></ept> &amp; wait
    source      Click <g1>here</g1> & wait
    target      Klicken Sie <g1>hier</g1> & warten Sie
    file        Klicken Sie <bpt i="1">&lt;b></bpt>hier<ept i="1">&lt;/b></ept> &amp; warten Sie

The tags are of a kind that `text/protect.py` carries over. Their names do not occur in the text itself.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Literal

from dragoman.data.documents.unit import Check, Unit, UnitState, unchecked
from dragoman.text.protect import carried, protect
from dragoman.text.spans import DEFAULT_KINDS

Escape = Callable[[str], str]
"""How text is written in the file."""
_TAG = re.compile(r"</?g+[0-9]+/?>")
_NAMES = re.compile(r"</?(g+)")


@dataclass(slots=True)
class _Part:
    kind: Literal["text", "open", "close", "alone"]
    raw: str
    partner: Hashable = None


class Inline:
    """Collects the content of a unit, part by part."""

    def __init__(self, check: Check = unchecked) -> None:
        self.check = check
        self._parts: list[_Part] = []
        self._text: list[str] = []  # the pieces of a text that has not ended yet

    def text(self, text: str) -> None:
        """Text as it is to be read, without the escapes of the file."""
        if text:
            self.check(1)
            self._text.append(text)

    def alone(self, raw: str) -> None:
        self._add(_Part("alone", raw))

    def open(self, raw: str, partner: Hashable) -> None:
        """A code that ends where `close` is called with the same partner; alone if it never is."""
        self._add(_Part("open", raw, partner))

    def close(self, raw: str, partner: Hashable) -> None:
        self._add(_Part("close", raw, partner))

    def _add(self, part: _Part) -> None:
        self.check(1)
        self._end_text()
        self._parts.append(part)

    def _end_text(self) -> None:
        if self._text:
            self._parts.append(_Part("text", "".join(self._text)))
            self._text = []

    @property
    def plain(self) -> str:
        return "".join([*(part.raw for part in self._parts if part.kind == "text"), *self._text])

    def unit(self, id: str, line: int, escape: Escape, state: UnitState = "new") -> Unit:
        self._end_text()
        before, parts, after = _trimmed(_paired(self._parts), escape)
        texts = (part.raw for part in parts if part.kind == "text")
        taken = max((len(found[1]) for text in texts for found in _NAMES.finditer(text)), default=0)
        name = "g" * (taken + 1)
        codes: dict[str, str] = {}
        numbers: dict[Hashable, int] = {}
        source: list[str] = []
        for part in parts:
            if part.kind == "text":
                source.append(part.raw)
                continue
            number = numbers.setdefault(part.partner, len(numbers) + 1)
            form = {"open": "<{}{}>", "close": "</{}{}>", "alone": "<{}{}/>"}[part.kind]
            tag = form.format(name, number)
            codes[tag] = part.raw
            source.append(tag)
        return Unit(id, line, "".join(source), codes, before, after, state)


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
    before: list[str] = []
    after: list[str] = []
    first, last = 0, len(parts)
    while first < last:
        head, tail = parts[first], parts[last - 1]
        if head.kind == "text" and (spaces := len(head.raw) - len(head.raw.lstrip())):
            before.append(escape(head.raw[:spaces]))
            parts[first] = _Part("text", head.raw[spaces:])
            first += spaces == len(head.raw)
        elif tail.kind == "text" and (spaces := len(tail.raw) - len(tail.raw.rstrip())):
            after.append(escape(tail.raw[-spaces:]))
            parts[last - 1] = _Part("text", tail.raw[:-spaces])
        elif head.kind == "alone":
            before.append(head.raw)
            first += 1
        elif tail.kind == "alone":
            after.append(tail.raw)
            last -= 1
        elif head.kind == "open" and tail.kind == "close" and head.partner == tail.partner:
            before.append(head.raw)
            after.append(tail.raw)
            first, last = first + 1, last - 1
        else:
            break
    return "".join(before), parts[first:last], "".join(reversed(after))


def fault(unit: Unit, text: str) -> str | None:
    """What is wrong with a translation, in a few words. None if it is valid."""
    if not text.strip():
        return "the translation is empty"
    if not carried(protect(unit.source, DEFAULT_KINDS), text):
        return "placeholders or inline tags are not those of the source"
    opened: list[str] = []
    for _, tag in _cut(unit, text):
        if tag.startswith("</"):
            if not opened or opened.pop() != tag.replace("/", ""):
                return "inline tags cross each other"
        elif tag and not tag.endswith("/>"):
            opened.append(tag)
    return "an inline tag is not closed" if opened else None


def written_unit(unit: Unit, text: str, escape: Escape) -> str:
    """A translation as it is written in the file."""
    written = "".join(escape(piece) + unit.codes.get(tag, "") for piece, tag in _cut(unit, text))
    return f"{unit.before}{written}{unit.after}"


def _cut(unit: Unit, text: str) -> Iterator[tuple[str, str]]:
    """A translation at the tags of its unit: what comes before each, and the tag; none after the last."""
    at = 0
    for found in _TAG.finditer(text) if unit.codes else ():
        if found[0] in unit.codes:
            yield text[at : found.start()], found[0]
            at = found.end()
    yield text[at:], ""
