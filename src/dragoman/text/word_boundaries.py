"""Word boundaries by character classes, independent of any tokenizer.

Glossaries and constraints match whole words: there is a boundary between two characters unless both are word
characters (letters, digits, combining marks, and `_`). Scripts written without spaces (Han, kana, Thai, Lao,
Khmer, Burmese) have a boundary everywhere.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

Place = tuple[int, int]
"""Start and end of a span of characters."""

_WITHOUT_SPACES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x2FDF),  # radicals
    (0x3005, 0x3007),
    (0x3040, 0x30FF),  # kana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


def is_word_character(character: str) -> bool:
    if character.isascii():
        return character.isalnum() or character == "_"
    if not character.isalnum() and unicodedata.category(character)[0] != "M":
        return False
    code = ord(character)
    return not any(first <= code <= last for first, last in _WITHOUT_SPACES)


@cache
def word_pattern() -> re.Pattern[str]:
    """Finds runs of word characters."""
    without = "".join(f"{chr(first)}-{chr(last)}" for first, last in _WITHOUT_SPACES)
    letters = f"[^\\W{without}]"  # `\w` has no combining marks
    characters = map(chr, (*range(0x300, 0x20000), *range(0xE0000, 0xE1000)))
    marks = "".join(
        one for one in characters if unicodedata.category(one)[0] == "M" and is_word_character(one)
    )
    return re.compile(f"(?:{letters}+|[{marks}]+)+")


def is_boundary(text: str, place: int) -> bool:
    """Whether the characters before and after `place` belong to different words."""
    if not 0 < place < len(text):
        return True
    return not (is_word_character(text[place - 1]) and is_word_character(text[place]))


def places_of(phrase: str, text: str) -> Iterator[int]:
    """The positions of `phrase` in `text` as whole words."""
    place = text.find(phrase)
    while place >= 0:
        if is_boundary(text, place) and is_boundary(text, place + len(phrase)):
            yield place
        place = text.find(phrase, place + 1)


def has_phrase(text: str, phrase: str) -> bool:
    return next(places_of(phrase, text), None) is not None


def words(text: str) -> list[Place]:
    """Words separated by white space, as in alignments."""
    found: list[Place] = []
    start = 0
    for place, char in enumerate(f"{text} "):
        if char.isspace():
            if place > start:
                found.append((start, place))
            start = place + 1
    return found


def units(text: str) -> list[Place]:
    """Words, with punctuation marks and symbols as separate units; markup can be placed between units."""
    found: list[Place] = []
    for start, end in words(text):
        first = start
        for place in range(start, end):
            if not _in_word(text[place]):
                found += [(first, place)] if place > first else []
                found.append((place, place + 1))
                first = place + 1
        found += [(first, end)] if end > first else []
    return found


def _in_word(char: str) -> bool:
    """Letters, digits, combining marks and format characters, which some scripts use inside words."""
    return char.isalnum() or unicodedata.category(char)[0] in "MC"
