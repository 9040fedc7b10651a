"""What no model may touch, or what is to be called by a name: out before the translator, back after it.

    source   Press <x>Enter</x> on the heart monitor.
    masked   Press {k1} on the {k2}.                 placeholders, which every translator carries over
    target   Drücken Sie {k1} am {k2}.
    unmasked Drücken Sie <x>Enter</x> am Herzmonitor.

A translator that can insist on terms is asked to (`decode/rules/lexical.py`); this is for those that cannot.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from dragoman.text.glossary import Glossary
from dragoman.text.normalize import nfc
from dragoman.text.spans import Span, find


@dataclass(frozen=True)
class Masked:
    text: str
    behind: dict[str, str]
    """What stands behind each placeholder."""

    def unmask(self, translation: str) -> str:
        if not self.behind:
            return translation
        pattern = "|".join(map(re.escape, self.behind))
        return re.sub(pattern, lambda found: self.behind[found[0]], translation)


def mask(text: str, glossary: Glossary | None = None, ignored: Collection[str] = ()) -> Masked:
    """Elements with the `ignored` names and terms of the glossary become placeholders."""
    places = list(_elements(text, ignored)) if ignored else []
    if glossary is not None:
        text = nfc(text) if not places else text
        taken = [(start, end) for start, end, _ in places] + [(one.start, one.end) for one in find(text)]
        for match in glossary.matches(text) if nfc(text) == text else ():
            if all(match.end <= start or end <= match.start for start, end in taken):
                places.append((match.start, match.end, match.targets[0]))
    name = "k"
    while f"{{{name}" in text:
        name += "k"
    parts: list[str] = []
    behind: dict[str, str] = {}
    at = 0
    for number, (start, end, written) in enumerate(sorted(places), 1):
        placeholder = f"{{{name}{number}}}"
        behind[placeholder] = written
        parts += (text[at:start], placeholder)
        at = end
    return Masked("".join([*parts, text[at:]]), behind)


def _elements(text: str, names: Collection[str]) -> Iterator[tuple[int, int, str]]:
    """The outermost elements of these names, from tag to tag; one that is never closed is let be."""
    wanted = {name.lower() for name in names}
    tags = [(span, name) for span in find(text, ("tag",)) if (name := _name(span)) in wanted]
    depth, begun, opened = 0, 0, ""
    for number, (span, name) in enumerate(tags):
        if depth == 0 and not span.text.startswith("</"):
            begun, opened = span.start, name
            if span.text.endswith("/>"):
                yield span.start, span.end, span.text
            elif any(other == name and one.text.startswith("</") for one, other in tags[number + 1 :]):
                depth = 1
        elif depth and name == opened and not span.text.endswith("/>"):
            depth += -1 if span.text.startswith("</") else 1
            if depth == 0:
                yield begun, span.end, text[begun : span.end]


def _name(span: Span) -> str:
    return re.split(r"[\s/>]", span.text.lstrip("</"), maxsplit=1)[0].lower()
