"""Additions to a source, for a model that was trained to read them: terms, and a similar translation.

    The <term> cover <as> Deckel </term> is open.       a term (Dinu et al. 2019), to be inflected
    The cover is open. <memory> Die Klappe ist offen.   the target of a similar source (Bulte & Tezcan 2019)

The marks are control pieces, which no text can produce. They are inserted between the pieces of the source,
so an engine only sees a longer source.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from dragoman.errors import UserError
from dragoman.text.glossary import Glossary
from dragoman.text.segment import nfc, with_mark
from dragoman.text.spans import find
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.word_boundaries import Place

TERM_PIECES = ("<term>", "<as>", "</term>")
MEMORY_PIECES = ("<memory>",)

PlacedTerm = tuple[int, int, str]
"""A term at `text[start:end]`, and its translation."""
SpeltTerm = tuple[int, int, Sequence[int]]
"""A term at `ids[first:behind]`, and the ids of its translation."""


def knows(tokenizer: Tokenizer, pieces: Sequence[str]) -> bool:
    """Whether the vocabulary has these control pieces, as in a run trained with them."""
    try:
        return bool(tokenizer.control_ids(pieces))
    except UserError:
        return False


def with_terms(tokenizer: Tokenizer, ids: Sequence[int], terms: Iterable[PlacedTerm]) -> list[int]:
    """The ids of a source with its terms, from left to right, by their places in the text of the ids."""
    terms = list(terms)
    places = pieces_in(tokenizer, ids, tokenizer.decode(ids), [term[:2] for term in terms])
    spelt_terms = [
        (*place, spelt(tokenizer, target)) for place, (_, _, target) in zip(places, terms, strict=True)
    ]
    return between(ids, spelt_terms, tokenizer.control_ids(TERM_PIECES))


def pieces_in(
    tokenizer: Tokenizer, ids: Sequence[int], text: str, spans: Iterable[Place]
) -> list[tuple[int, int]]:
    """The pieces `ids[first:behind]` that have something of each span of `text`, which is that of the ids. No
    span begins or ends with a space."""
    ends = list(accumulate(len(tokenizer.bytes_of(piece)) for piece in ids))  # in bytes
    before = ends[-1] - len(text.encode()) if ids and tokenizer.config.word_mark == "start" else 0
    found = []
    for start, end in spans:
        begin = before + len(text[:start].encode())
        last = begin + len(text[start:end].encode()) - 1
        found.append((bisect_right(ends, begin), bisect_right(ends, last) + 1))
    return found


def between(ids: Sequence[int], terms: Iterable[SpeltTerm], marks: Sequence[int]) -> list[int]:
    """The ids of a source with its terms, from left to right. No piece is in two of them."""
    begins, means, ends = marks
    result: list[int] = []
    at = 0
    for place, behind, target in terms:
        first = max(place, at)
        if first < behind:
            result += [*ids[at:first], begins, *ids[first:behind], means, *target, ends]
            at = behind
    return [*result, *ids[at:]]


def with_similar(tokenizer: Tokenizer, ids: Sequence[int], target: str) -> list[int]:
    """The ids of a source, with the target of a similar one behind it."""
    return [*ids, *similar_part(tokenizer, target)]


def similar_part(tokenizer: Tokenizer, target: str) -> list[int]:
    """What stands behind a source."""
    return [*tokenizer.control_ids(MEMORY_PIECES), *spelt(tokenizer, target)]


def spelt(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.spell(with_mark(nfc(text), tokenizer.config))


class BesideTokenizer(Tokenizer):
    """A tokenizer that adds to each text its terms from a glossary and its target in `similar`. Additions
    that would make the source longer than `longest` are left out."""

    def __init__(
        self,
        inner: Tokenizer,
        glossary: Glossary | None = None,
        similar: Mapping[str, str] | None = None,
        longest: int | None = None,
    ) -> None:
        vars(self).update(vars(inner))
        self._glossary, self._similar, self._longest = glossary, similar or {}, longest

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        rows = super().encode_batch(texts)
        return [self._beside(text, ids) for text, ids in zip(texts, rows, strict=True)]

    def _beside(self, text: str, ids: list[int]) -> list[int]:
        if self._glossary is not None and ids:
            ids = self._if_room(with_terms(self, ids, self._terms(self._glossary, self.decode(ids))), ids)
        if text in self._similar:
            ids = self._if_room(with_similar(self, ids, self._similar[text]), ids)
        return ids

    def _terms(self, glossary: Glossary, text: str) -> list[PlacedTerm]:
        """The terms of a text, except in spans that stay unchanged, such as addresses and markup."""
        spans = find(text)
        return [
            (match.start, match.end, match.targets[0])
            for match in glossary.matches(text)
            if not any(span.start < match.end and match.start < span.end for span in spans)
        ]

    def _if_room(self, longer: list[int], ids: list[int]) -> list[int]:
        return longer if self._longest is None or len(longer) <= self._longest else ids
