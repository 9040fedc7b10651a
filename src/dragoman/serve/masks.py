"""Placeholders for untranslatable text and for terms: masked before translation, restored after it.

    source   Press <x>Enter</x> on the heart monitor.
    masked   Press {k1} on the {k2}.                 placeholders, which every translator keeps
    target   Drücken Sie {k1} am {k2}.
    unmasked Drücken Sie <x>Enter</x> am Herzmonitor.

Translators that can constrain terms do so (`rules/required_phrases.py`); this is for those that cannot.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import accumulate

from dragoman.text.glossary import Glossary
from dragoman.text.segment import nfc
from dragoman.text.spans import Span, find

_PLACEHOLDER = re.compile(r"\{k+[0-9]+\}")
_NAMES = re.compile(r"\{(k+)")


@dataclass(frozen=True)
class TextWithMasks:
    text: str
    behind: dict[str, str]
    """The text behind each placeholder."""

    def unmask(self, translation: str) -> str:
        if not self.behind:
            return translation
        return _PLACEHOLDER.sub(lambda found: self.behind.get(found[0], found[0]), translation)


def mask(text: str, glossary: Glossary | None = None, ignored: Collection[str] = ()) -> TextWithMasks:
    """Replace elements with the `ignored` names and terms of the glossary by placeholders."""
    places = list(_elements(text, ignored)) if ignored else []
    if glossary is not None:
        text = nfc(text) if not places else text
        taken = _Taken([*((start, end) for start, end, _ in places), *((s.start, s.end) for s in find(text))])
        places += [
            (match.start, match.end, match.targets[0])
            for match in (glossary.matches(text) if nfc(text) == text else ())
            if not taken.any(match.start, match.end)
        ]
    name = "k" * (1 + max((len(found[1]) for found in _NAMES.finditer(text)), default=0))
    parts: list[str] = []
    behind: dict[str, str] = {}
    at = 0
    for number, (start, end, written) in enumerate(sorted(places), 1):
        placeholder = f"{{{name}{number}}}"
        behind[placeholder] = written
        parts += (text[at:start], placeholder)
        at = end
    return TextWithMasks("".join([*parts, text[at:]]), behind)


class _Taken:
    """Occupied ranges of a text."""

    def __init__(self, places: list[tuple[int, int]]) -> None:
        ordered = sorted(places)
        self._starts = [start for start, _ in ordered]
        self._ends = list(accumulate((end for _, end in ordered), max))

    def any(self, start: int, end: int) -> bool:
        """Whether one of the ranges overlaps this one."""
        before = bisect_left(self._starts, end)
        return before > 0 and self._ends[before - 1] > start


def _elements(text: str, names: Collection[str]) -> Iterator[tuple[int, int, str]]:
    """The outermost elements with these names, from opening to closing tag. Elements that are never closed
    are skipped."""
    wanted = {name.lower() for name in names}
    tags = [(span, name) for span in find(text, ("tag",)) if (name := _name(span)) in wanted]
    last_closing = {name: number for number, (span, name) in enumerate(tags) if span.text.startswith("</")}
    depth, begun, opened = 0, 0, ""
    for number, (span, name) in enumerate(tags):
        if depth == 0 and not span.text.startswith("</"):
            begun, opened = span.start, name
            if span.text.endswith("/>"):
                yield span.start, span.end, span.text
            elif last_closing.get(name, -1) > number:
                depth = 1
        elif depth and name == opened and not span.text.endswith("/>"):
            depth += -1 if span.text.startswith("</") else 1
            if depth == 0:
                yield begun, span.end, text[begun : span.end]


def _name(span: Span) -> str:
    return re.split(r"[\s/>]", span.text.lstrip("</"), maxsplit=1)[0].lower()
