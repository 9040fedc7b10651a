"""Text in capital letters, as in headings and warnings.

A model that has read little of it spells `CHECK THE BATTERY` in many rare pieces, and translates something
else. It translates the same words in lower case well, so they are translated in lower case, and the
translation is written in capitals.
"""

from collections.abc import Callable

_FEWEST_WORDS = 3
"""Shorter texts may be abbreviations."""
_MORE_PIECES = 1.4
"""A model that knows the capitals would not need so many times the pieces of the lower case."""


def in_lower_case(text: str, count_pieces: Callable[[str], int]) -> str | None:
    """The text in lower case, with or without a capital at the start; None if it is not in capitals, or if
    the vocabulary spells capitals as well."""
    if not text.isupper() or sum(word.isupper() and len(word) > 1 for word in text.split()) < _FEWEST_WORDS:
        return None
    lower = text.lower()
    if len(lower) != len(text) or lower.upper() != text:
        return None
    first = next(place for place, letter in enumerate(lower) if letter.isalpha())
    start = lower[:first] + text[first] + lower[first + 1 :]
    best = min(start, lower, key=count_pieces)
    return best if count_pieces(text) >= _MORE_PIECES * count_pieces(best) else None
