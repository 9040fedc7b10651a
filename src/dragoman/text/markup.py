"""Markup tags: opening, closing and empty ones, and which belong together."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from dragoman.text.spans import Span

Role = Literal["open", "close", "alone"]

_EMPTY_ELEMENTS = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
})  # fmt: skip
"""HTML elements without a closing tag."""


def role(span: Span) -> Role:
    if span.kind != "tag" or span.text.startswith("<!--") or span.text.endswith("/>"):
        return "alone"
    if span.text.startswith("</"):
        return "close"
    return "alone" if _name(span) in _EMPTY_ELEMENTS else "open"


def partners(spans: Sequence[Span]) -> list[int | None]:
    """For each opening tag the index of its closing tag, and the other way round; None for a tag without a
    partner or whose element would overlap another."""
    found: list[int | None] = [None] * len(spans)
    opened: list[int] = []
    names: Counter[str] = Counter()
    for number, span in enumerate(spans):
        kind = role(span)
        if kind == "open":
            opened.append(number)
            names[_name(span)] += 1
        elif kind == "close" and names[_name(span)]:
            while _name(spans[opened[-1]]) != _name(span):
                names[_name(spans[opened.pop()])] -= 1
            first = opened.pop()
            names[_name(span)] -= 1
            found[first], found[number] = number, first
    return found


def well_formed(spans: Sequence[Span]) -> bool:
    """Whether every opening tag is closed and elements are properly nested."""
    pairs = partners(spans)
    return all(role(span) == "alone" or pairs[number] is not None for number, span in enumerate(spans))


def _name(span: Span) -> str:
    inside = span.text.strip("<>/ \t\r\n")
    end = next((place for place, char in enumerate(inside) if char.isspace() or char == "/"), len(inside))
    return inside[:end].lower()
