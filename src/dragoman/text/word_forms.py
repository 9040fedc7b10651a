"""Guesses whether two words are forms of one word, from their letters alone.

    Tabelle  Tabellen      yes: the common beginning covers most of the longer word
    Mann     Männern       yes: accents are ignored
    Tabelle  Tafel         no

It misses forms such as «goes» and «went», and accepts some unrelated words that look alike.
"""

import unicodedata

from dragoman.text.word_boundaries import word_pattern

_COMMON = 0.55
"""Smallest share of the longer word that both words begin with."""
_LEAST = 3


def common_beginning(one: str, other: str) -> int:
    """Number of letters that both words begin with."""
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)


def are_forms(one: str, other: str) -> bool:
    """Whether two words, without case and accents, are equal or have a long common beginning."""
    one, other = _folded(one), _folded(other)
    shared = common_beginning(one, other)
    return one == other or (shared >= _LEAST and shared >= _COMMON * max(len(one), len(other)))


def form_in(text: str, phrase: str) -> str | None:
    """The first words of a text that are forms of the words of a phrase, or None."""
    wanted, places = word_runs(phrase), word_runs(text)
    for first in range(len(places) - len(wanted) + 1):
        found = places[first : first + len(wanted)]
        if wanted and all(are_forms(own[0], other[0]) for own, other in zip(found, wanted, strict=True)):
            return text[found[0][1] : found[-1][2]]
    return None


def word_runs(text: str) -> list[tuple[str, int, int]]:
    """Runs of letters, digits and marks, with their places."""
    return [(run[0], run.start(), run.end()) for run in word_pattern().finditer(text)]


def _folded(word: str) -> str:
    decomposed = unicodedata.normalize("NFD", word.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))
