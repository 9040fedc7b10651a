"""Sentence splitting; the sentences concatenated are the text, white space included.

A sentence ends at . ! ? … (with closing quotes or brackets after it) before white space and something that
can begin a sentence, at their full-width forms, and at the end of a line. It does not end after a single
letter or a common abbreviation, nor before a lower-case letter. One pass from left to right.
"""

import re
from collections.abc import Iterator

_ENDS = frozenset(".!?…")
_WIDE_ENDS = frozenset("。！？")
_AFTER = _ENDS | _WIDE_ENDS | frozenset("\"'”’»)]}›」』")
_MARK = re.compile("[\n.!?…。！？]")
_LONGEST_TAG = 64
_USUAL = """
approx bzw ca cf ch co corp d.h dept dr e.g ed eds evtl fig figs ggf i.e inc jr ltd mio mr mrs ms nr p pp prof
rev sen sr st str tel u.a u.s vol vs z.b
"""
_ABBREVIATIONS = frozenset(_USUAL.split())


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, each with the white space after it."""
    return list(_pieces(text))


def _pieces(text: str) -> Iterator[str]:
    begin = at = 0
    while mark := _MARK.search(text, at):
        at, ends = _look(text, begin, mark.start())
        if ends:
            while at < len(text) and text[at].isspace():
                at += 1
            yield text[begin:at]
            begin = at
    if begin < len(text):
        yield text[begin:]


def _look(text: str, begin: int, at: int) -> tuple[int, bool]:
    """How far the mark at this place goes, and whether a sentence ends with it."""
    char = text[at]
    if char == "\n":
        return at + 1, True
    if char in _WIDE_ENDS:
        return _closed(text, at + 1), True
    end = _closed(text, at + 1)
    if end >= len(text) or not text[end].isspace() or (char == "." and _abbreviated(text, begin, at)):
        return end, False
    following = end
    while following < len(text) and text[following].isspace():
        following += 1
    return end, following < len(text) and not text[following].islower()


def _closed(text: str, at: int) -> int:
    """Past what belongs to the end of a sentence: further marks, closing quotes, brackets and tags."""
    while at < len(text):
        if text.startswith("</", at):
            tag = text.find(">", at, at + _LONGEST_TAG)
            if tag < 0:
                break
            at = tag
        elif text[at] not in _AFTER:
            break
        at += 1
    return at


def _abbreviated(text: str, begin: int, at: int) -> bool:
    start = at
    while (
        start > begin
        and at - start < 10
        and not text[start - 1].isspace()
        and text[start - 1] not in "(\"'“„«"
    ):
        start -= 1
    word = text[start:at]
    return (len(word) == 1 and word.isalpha()) or word.casefold() in _ABBREVIATIONS
