"""A translation memory with fuzzy search.

Candidates share rare words with the text (an inverted index over normalised words). They are ranked by
character edit distance. A search in a million sentences takes a few milliseconds.
"""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dragoman.data.text_hashes import normalise
from dragoman.errors import missing_extra

TextPair = tuple[str, str]
LEAST_SIMILAR = 60.0
"""Default minimum similarity of the translations given to a model that reads similar translations."""
_LOOKED_AT = 64
"""Number of candidates whose edit distance is computed."""
_MOST_POSTINGS = 20_000
"""Largest number of sentences counted for one word. More frequent words carry no information."""
_COUNTED = 8_000
"""Number of index entries that are counted, rare words first."""
_LONGEST = 2000
_MOST_DROPPED = 1000
"""Number of dropped pairs, beyond the number of pairs left, at which the memory is rebuilt."""


@dataclass(frozen=True)
class FuzzyMatch:
    source: str
    target: str
    quality: float
    """100 for equal sources, else 100 · (1 − distance / longer length)."""


class TranslationMemory:
    """Pairs of texts with an exact and a fuzzy search.

    `put` and `drop` run in the event loop while other threads search. Every number in an index therefore
    refers to a pair, or to None if it was dropped.
    """

    def __init__(self, pairs: Iterable[TextPair]) -> None:
        self._clear()
        for pair in dict.fromkeys(pairs):
            if pair[0].strip() and pair[1].strip():
                self._add(pair)

    def _clear(self) -> None:
        self._pairs: list[TextPair | None] = []
        self._dropped = 0
        self._postings: dict[str, array[int]] = {}
        self._exact: dict[str, list[int]] = {}

    def _add(self, pair: TextPair) -> None:
        number = len(self._pairs)
        self._pairs.append(pair)
        self._exact.setdefault(same_spaces(pair[0]), []).append(number)
        for word in set(normalise(pair[0]).split()):
            self._postings.setdefault(word, array("l")).append(number)

    def __len__(self) -> int:
        return len(self._pairs) - self._dropped

    def put(self, source: str, target: str) -> None:
        """Store the only translation of this text. Earlier ones are dropped."""
        self.drop(source)
        self._add((source, target))

    def drop(self, source: str) -> None:
        """Drop all translations of this text."""
        for number in self._exact.pop(same_spaces(source), ()):
            self._pairs[number] = None
            self._dropped += 1
        if self._dropped > _MOST_DROPPED + len(self):
            left = [pair for pair in self._pairs if pair is not None]
            self._clear()
            for pair in left:
                self._add(pair)

    def exact(self, text: str) -> str | None:
        """The first translation of exactly this text."""
        found = self._exact.get(same_spaces(text))
        pair = self._pairs[found[0]] if found else None
        return pair[1] if pair else None

    def matches(
        self, text: str, least: float = 70.0, most: int = 5, looked_at: int | None = None
    ) -> list[FuzzyMatch]:
        """The most similar pairs, best first, among `looked_at` candidates. A text that is too long only
        matches exactly."""
        wanted, pairs = same_spaces(text), self._pairs
        numbers = list(self._exact.get(wanted, ()))
        if len(wanted) <= _LONGEST:
            candidates = self._candidates(wanted, looked_at or _LOOKED_AT)
            numbers += [number for number in candidates if number not in numbers]
        known = [pairs[number] for number in numbers if number < len(pairs)]
        found = [FuzzyMatch(*pair, similarity(wanted, pair[0])) for pair in known if pair is not None]
        good = [match for match in found if match.quality >= least]
        return sorted(good, key=lambda match: -match.quality)[:most]

    def _candidates(self, text: str, looked_at: int) -> list[int]:
        """The sentences that share the most words with the text, weighted by how rare the words are."""
        words = set(normalise(text).split())
        lists = [self._postings[word] for word in sorted(words) if word in self._postings]
        counted: list[np.ndarray] = []
        weights: list[np.ndarray] = []
        room = _COUNTED
        for postings in sorted(lists, key=len):
            if counted and len(postings) > room:
                break
            numbers = np.frombuffer(
                postings[:_MOST_POSTINGS], dtype=np.dtype("l")
            )  # a copy, because the array may grow
            counted.append(numbers)
            weights.append(np.full(len(numbers), 1 + 1000 // len(postings)))
            room -= len(numbers)
        if not counted:
            return []
        found, places = np.unique(np.concatenate(counted), return_inverse=True)
        points = np.bincount(places, np.concatenate(weights))
        best = np.arange(len(found))
        if len(found) > looked_at:
            best = np.argpartition(-points, looked_at - 1)[:looked_at]
        return found[best[np.lexsort((found[best], -points[best]))]].tolist()


def same_spaces(text: str) -> str:
    """The text with single spaces. Texts that differ only in white space are equal."""
    return " ".join(text.split())


def similarity(one: str, other: str) -> float:
    """100 for equal texts, at most 99 for others, 0 if one text is more than three times as long as the
    other."""
    other = same_spaces(other)
    if one == other:
        return 100.0
    longer = max(len(one), len(other))
    shorter = min(len(one), len(other))
    if shorter * 3 < longer:
        return 0.0
    try:
        from rapidfuzz.distance import Levenshtein  # an optional package, which comes with `serve`
    except ModuleNotFoundError:
        raise missing_extra("rapidfuzz", "serve", "a translation memory") from None
    return min(99.0, round(100 * (1 - Levenshtein.distance(one, other) / longer), 1))
