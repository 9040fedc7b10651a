"""Where the words of a text stand. Plain characters, no tokenizer: two people who count words agree."""

import unicodedata

Place = tuple[int, int]
"""First character, and the one after the last."""


def words(text: str) -> list[Place]:
    """What white space separates: the words that alignments are written about."""
    found: list[Place] = []
    start = 0
    for place, char in enumerate(f"{text} "):
        if char.isspace():
            if place > start:
                found.append((start, place))
            start = place + 1
    return found


def units(text: str) -> list[Place]:
    """The same, with every mark of punctuation and every symbol on its own: what markup can stand between."""
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
    """Letters, digits and the marks that combine with them; scripts that join with other signs stay whole."""
    return char.isalnum() or unicodedata.category(char)[0] in "MC"
