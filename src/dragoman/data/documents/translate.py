"""Translate what a document still lacks, check it, and say what had to be left empty."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dragoman.data.documents.inline import fault
from dragoman.data.documents.unit import Check, Unit, unchecked
from dragoman.data.formats.language_codes import TWO_LETTERS
from dragoman.text.context import windows
from dragoman.text.sentences import split_sentences

TranslateTexts = Callable[[list[str]], Sequence[str]]
"""The translations of texts, in their order. Tags and placeholders are to come out as they went in."""
UnitProgress = Callable[[int, int], None]


@dataclass
class TranslatedUnits:
    texts: dict[int, str] = field(default_factory=dict)
    """Translations by the number of the unit."""
    left: list[tuple[Unit, str]] = field(default_factory=list)
    """Units that stay empty, and why."""
    kept: int = 0
    """Units that had a translation already."""


def translate_units(
    units: Sequence[Unit],
    translate: TranslateTexts,
    progress: UnitProgress | None = None,
    batch: int = 1024,
    longest: int | None = None,
    check: Check = unchecked,
    language: str = "en",
    context: int = 0,
) -> TranslatedUnits:
    """Every unit sentence by sentence; the same sentence is translated once, or with a `context` once after
    the same sentences: so many before it in the document stand in front of it (`text/context.py`). A unit
    with a sentence of more than `longest` characters is left as it is. `check` is called for each unit, and
    may raise. `language` is that of the source, by which it is split into sentences."""
    language = TWO_LETTERS.get(language, language)
    outcome = TranslatedUnits(kept=sum(unit.state == "done" for unit in units))
    pieces: dict[int, list[str]] = {}
    for number, unit in enumerate(units):
        check(0)
        if unit.state == "new" or context:
            pieces[number] = split_sentences(unit.source, language)
    asked = _in_context(pieces, context)
    for number, found in list(pieces.items()):
        if units[number].state == "done":
            del pieces[number]
        elif longest is not None and any(len(piece) > longest for piece in found):
            outcome.left.append((units[number], f"a sentence of more than {longest:,} characters"))
            del pieces[number]
    wanted = [text for text in dict.fromkeys(text for number in pieces for text in asked[number]) if text]
    known: dict[str, str] = {"": ""}
    for start in range(0, len(wanted), batch):
        texts = wanted[start : start + batch]
        known |= zip(texts, translate(texts), strict=True)
        if progress:
            progress(min(start + batch, len(wanted)), len(wanted))
    for number, found in pieces.items():
        check(0)
        both = zip(found, asked[number], strict=True)
        text = "".join(with_spaces(piece, known[whole]) for piece, whole in both)
        reason = fault(units[number], text)
        if not units[number].source:
            continue
        if reason is None:
            outcome.texts[number] = text
        else:
            outcome.left.append((units[number], reason))
    return outcome


def _in_context(pieces: Mapping[int, Sequence[str]], context: int) -> dict[int, list[str]]:
    """The sentences of each unit as they are asked for."""
    sentences = (piece.strip() for found in pieces.values() for piece in found)
    asked = windows(((0, text) for text in sentences), context) if context else sentences
    return {number: [next(asked) for _ in found] for number, found in pieces.items()}


def with_spaces(piece: str, translation: str) -> str:
    """The translation as one line, between the white space that was around the source."""
    start = len(piece) - len(piece.lstrip())
    end = len(piece.rstrip())
    return f"{piece[:start]}{' '.join(translation.split(chr(10)))}{piece[end:] if end >= start else ''}"
