"""Protection of spans that a translation must contain unchanged, exactly once.

    source ─ find ─▶ spans                                         `spans.py`
    source ─ cut ──▶ text without them ─▶ model ─▶ translation
    translation, spans, weights ─ restore ─▶ text with all of them  `markup_placement.py` says where
                                    │
                                    └─ verified: the same spans, each as often; tags nested if they were

Models that have never seen markup damage it, and no placeholder is safe with every model. So spans are
removed before translation and put back after it by attention weights. The result of `restore` is scanned for
spans again; if they are not those of the source, the next, simpler placement is tried.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dragoman.text.markup import role, well_formed
from dragoman.text.markup_placement import Mark, arrange, with_spans
from dragoman.text.segment import nfc
from dragoman.text.spans import DEFAULT_KINDS, Span, SpanKind, find
from dragoman.text.word_boundaries import Place, units, words

Protection = Literal["copied", "placed", "appended"]
"""`copied`: the model kept all spans itself; `placed`: they were put in by attention weights; `appended`: no
placement was safe, so they were put at the end."""

_MOST_UNITS = 1024
"""Maximum number of units of a text that is matched by word order alone."""
_GLUED_MARKS = frozenset(".,;:!?)]}»”")
_TRIGGERS = str.maketrans(dict.fromkeys("<>{}%$&@/\\:#€£¥+-.,'’0123456789", None))
"""Characters of which every span has at least one."""


@dataclass(frozen=True)
class Protected:
    """A source, and `text`, the input of the model: in NFC, without the spans of `marks`."""

    source: str
    text: str
    marks: tuple[Mark, ...]
    kinds: tuple[SpanKind, ...]

    @property
    def spans(self) -> list[Span]:
        return [mark.span for mark in self.marks]


def protect(source: str, kinds: Collection[SpanKind] = DEFAULT_KINDS) -> Protected:
    """Cut the spans out, with the white space that they no longer need."""
    marks: list[Mark] = []
    left = _Left()
    at, separates = 0, False
    for span in find(source, kinds):
        left.add(source[at : span.start], separates)
        separates = (separates and at == span.start) or role(span) == "alone"
        at, left.after_span = span.end, True
        before = source[span.start - 1].isspace() if span.start else None
        after = source[span.end].isspace() if span.end < len(source) else None
        marks.append(Mark(span, left.place, before, after))
    left.add(source[at:], separates)
    text = nfc("".join(left.parts))
    return Protected(source, text.rstrip() if marks else text, tuple(marks), tuple(kinds))


@dataclass
class _Left:
    """The rest of a source without its spans."""

    parts: list[str] = field(default_factory=list)
    length: int = 0
    place: int = 0
    """The end of the last word."""
    after_span: bool = False

    def add(self, segment: str, separates: bool) -> None:
        """Text after a span: of two spaces one is removed, the space before a full stop is removed, and a
        span between two words without spaces leaves one."""
        last = self.parts[-1][-1] if self.parts else " "
        if self.after_span and segment:
            if segment[0].isspace() and last.isspace():
                segment = segment[1:]
            elif segment[0] in _GLUED_MARKS and self.parts and last == " ":
                self.length -= 1
                self.parts[-1] = self.parts[-1][:-1]
                if not self.parts[-1]:
                    self.parts.pop()
            elif separates and last.isalnum() and segment[0].isalnum():
                segment = f" {segment}"
        if segment:
            part = nfc(segment)
            self.parts.append(part)
            self.place = self.length + len(part.rstrip())
            self.length += len(part)


def carried(protected: Protected, translation: str) -> bool:
    """Whether a translation has exactly the spans of the source, and tags that are nested if those are."""
    spans, found = protected.spans, find(translation, protected.kinds)
    if Counter((s.kind, s.text) for s in spans) != Counter((s.kind, s.text) for s in found):
        return False
    return well_formed(found) or not well_formed(spans)


def restore(
    translation: str, protected: Protected, weights: np.ndarray | None = None
) -> tuple[str, Protection]:
    """The translation of `protected.text` with every span. `weights` has a row for every unit of the
    translation and a column for every unit of `protected.text`; without them the same word order is assumed.

    Spans that the model invented are removed first. If that changes the translation, the weights are not
    used.
    """
    if not protected.text.strip() and not translation.strip():
        return protected.source, "placed"
    clean = _without_spans(translation, protected.kinds)
    *ways, last = _ways(clean, protected, weights if clean == translation else None)
    return next((way for way in ways if carried(protected, way[0])), last)


def _ways(
    translation: str, protected: Protected, weights: np.ndarray | None
) -> Iterator[tuple[str, Protection]]:
    marks, source_units, target_units = protected.marks, units(protected.text), units(translation)
    if weights is None or weights.shape != (len(target_units), len(source_units)):
        source_units, target_units = _joined(source_units), _joined(target_units)
        weights = _same_order(len(target_units), len(source_units))
    placed = arrange(marks, (protected.text, source_units), (translation, target_units), weights)
    for spaced in (False, True):
        yield with_spans(translation, target_units, placed, marks, spaced), "placed"
    at_end = " ".join(mark.span.text for mark in marks)
    yield f"{translation} {at_end}".strip(), "appended"
    yield f"{translation.translate(_TRIGGERS)} {at_end}".strip(), "appended"


def _joined(places: Sequence[Place]) -> Sequence[Place]:
    """Neighbours as one in texts that are longer than any model reads, so that no text takes steps and memory
    like the square of its length."""
    many = -(-len(places) // _MOST_UNITS)
    if many <= 1:
        return places
    groups = (places[at : at + many] for at in range(0, len(places), many))
    return [(group[0][0], group[-1][1]) for group in groups]


def _same_order(targets: int, sources: int) -> np.ndarray:
    """Weights of a translation in the same order as its source."""
    target, source = np.arange(targets)[:, None] + 0.5, np.arange(sources)[None] + 0.5
    return np.exp(-np.abs(target / max(targets, 1) - source / max(sources, 1)) * max(targets, sources, 1))


def _without_spans(text: str, kinds: Collection[SpanKind]) -> str:
    for _ in range(3):  # removing a span can create another one
        spans = find(text, kinds)
        if not spans:
            return text
        edges = [0, *(edge for span in spans for edge in (span.start, span.end)), len(text)]
        kept = [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]
        text = " ".join(" ".join(kept).split())
    return text.translate(_TRIGGERS)


def words_without_spans(text: str, bare: str, kinds: Collection[SpanKind]) -> list[Place] | None:
    """The positions of the words of `text` in `bare`, the same text without spans; a word that is a span has
    length 0. None if the texts differ in more than spans and white space."""
    text = nfc(text)
    inside = {place for span in find(text, kinds) for place in range(span.start, span.end)}
    kept = [place for place, char in enumerate(text) if place not in inside and not char.isspace()]
    there = [place for place, char in enumerate(bare) if not char.isspace()]
    if [text[place] for place in kept] != [bare[place] for place in there]:
        return None
    places: list[Place] = []
    at = end = 0
    for _, word_end in words(text):
        first = at
        while at < len(kept) and kept[at] < word_end:
            at += 1
        start, end = (there[first], there[at - 1] + 1) if at > first else (end, end)
        places.append((start, end))
    return places
