"""Sentence splitting with sentencex; the sentences concatenated are the text, white space included.

A sentence also ends at the end of a line. Tags are set aside while a text is cut: a closing tag belongs to
the sentence before it, all others to the one after it.

The time of sentencex grows with the square of a text that is full of quotes. So it never sees more than
`WINDOW` characters: a longer text is cut in windows that overlap.
"""

import re
from collections.abc import Iterator

from dragoman.errors import missing_package

WINDOW = 2000
_LINE = re.compile(r"[^\n]*\n\s*|[^\n]+")
_TAG = re.compile(r"<(/?)[A-Za-z][^<>]{0,64}>")

_ORDINAL = re.compile(r"\s*\d{1,3}\.\s*")
"""`3.` by itself: the number of a step or a day, which belongs to what follows."""


def split_sentences(text: str, language: str = "en") -> list[str]:
    """The sentences of a text, each with the white space after it. `language` knows its abbreviations."""
    sentences: list[str] = []
    before = ""  # white space at the beginning
    for line in _LINE.finditer(text):
        for piece in _cut(line[0], language):
            if not piece.isspace():
                sentences.append(before + piece)
                before = ""
            elif sentences:
                sentences[-1] += piece
            else:
                before += piece
    return [*sentences, before] if before else sentences


def _cut(line: str, language: str) -> Iterator[str]:
    """The sentences of one line."""
    bare, tags = _without_tags(line)
    begin = passed = removed = 0
    for boundary in _boundaries(bare.rstrip(), language):
        while passed < len(tags) and _comes_before(tags[passed], boundary, removed):
            removed += tags[passed].end() - tags[passed].start()
            passed += 1
        yield line[begin : boundary + removed]
        begin = boundary + removed
    if begin < len(line):
        yield line[begin:]


def _without_tags(line: str) -> tuple[str, list[re.Match[str]]]:
    tags = list(_TAG.finditer(line))
    if not tags:
        return line, tags
    ends = [0, *(tag.end() for tag in tags)]
    starts = [*(tag.start() for tag in tags), len(line)]
    return "".join(line[end:start] for end, start in zip(ends, starts, strict=True)), tags


def _comes_before(tag: re.Match[str], boundary: int, removed: int) -> bool:
    """Whether a tag stands before a boundary of the text without tags."""
    place = tag.start() - removed
    return place < boundary or (place == boundary and bool(tag[1]))


def _boundaries(text: str, language: str) -> Iterator[int]:
    """Sentence boundaries. Of each window only the boundaries in its first half are used, since those near
    its end may change with the following text."""
    start = 0
    while len(text) - start > WINDOW:
        within = [start + end for end in _ends(text[start : start + WINDOW], language)]
        half = start + WINDOW // 2
        taken = [end for end in within if end <= half] or within[:1]
        yield from taken
        start = taken[-1] if taken else start + WINDOW
    yield from (start + end for end in _ends(text[start:], language))


def _ends(text: str, language: str) -> list[int]:
    """Ends of the sentences of a short text, except the last."""
    try:
        from sentencex import segment  # type: ignore[attr-defined]
    except ModuleNotFoundError:
        raise missing_package("sentencex", "splitting text into sentences") from None
    pieces = segment(language, text)
    ends = []
    at = 0
    for piece in pieces[:-1]:
        at += len(piece)
        if not _ORDINAL.fullmatch(piece):
            ends.append(at)
    return ends if "".join(pieces) == text else []
