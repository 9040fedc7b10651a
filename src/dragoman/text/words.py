"""Where words begin and end: what «as whole words» means for glossaries and for constraints on translations.

A boundary lies between two characters unless both are word characters: letters, digits, marks, and `_`.
Scripts that are written without spaces (Han, kana, Thai, Lao, Khmer, Burmese) have a boundary everywhere.
"""

import unicodedata
from collections.abc import Iterator

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


def is_boundary(text: str, place: int) -> bool:
    """Whether the characters before and after `place` belong to different words."""
    if not 0 < place < len(text):
        return True
    return not (is_word_character(text[place - 1]) and is_word_character(text[place]))


def places_of(phrase: str, text: str) -> Iterator[int]:
    """Where `phrase` stands in `text` as whole words."""
    place = text.find(phrase)
    while place >= 0:
        if is_boundary(text, place) and is_boundary(text, place + len(phrase)):
            yield place
        place = text.find(phrase, place + 1)


def has_phrase(text: str, phrase: str) -> bool:
    return next(places_of(phrase, text), None) is not None
