"""A sentence with the preceding sentences, as one text.

    A cat sleeps.⋄It is black.      ids   ▁A ▁cat ▁sleeps . <sep> ▁It ▁is ▁black .

The sign between them, here ⋄, is U+FDD0. Unicode reserves it for internal use, so no text to translate has
it. A tokenizer with the piece `<sep>` encodes the sign as that piece, and no other text produces it.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dragoman.errors import UserError

SIGN = "\ufdd0"
SEPARATOR = "<sep>"
MOST_PRECEDING = 100
"""Largest number of preceding sentences."""


@dataclass(frozen=True)
class ContextConfig:
    """The number of preceding sentences that a sentence is translated with."""

    source: int = 1
    target: int = 0
    """Number of preceding sentences whose translations precede the target. 0: they are only read in the
    source."""
    max_tokens: int = 256
    """Largest number of tokens per side. The earliest sentences are dropped to fit."""

    def __post_init__(self) -> None:
        if self.source < 1:
            raise UserError(
                f"source: expected at least 1 sentence before, found {self.source}; leave context out to "
                "translate sentences alone"
            )
        if self.source > MOST_PRECEDING:
            raise UserError(
                f"source: expected at most {MOST_PRECEDING} sentences before, found {self.source}"
            )
        if not 0 <= self.target <= self.source:
            raise UserError(
                f"target: expected a number from 0 to {self.source}, the sentences of the source; found "
                f"{self.target}"
            )
        if self.max_tokens < 1:
            raise UserError(f"max_tokens: expected at least 1, found {self.max_tokens}")


class Boundaries:
    """Numbers documents. A blank line or a change of id ends a document."""

    def __init__(self, first: int = 0) -> None:
        self._number, self._id = first, ""
        self._begun = False

    def number(self, blank: bool, id: str = "") -> int:
        """The number of the document that the next line belongs to."""
        if self._begun and (blank or id != self._id):
            self._number, self._begun = self._number + 1, False
        if not blank:
            self._begun, self._id = True, id
        return self._number


def in_context(before: Sequence[str], text: str) -> str:
    """Join a sentence and the preceding ones into one text."""
    return SIGN.join((*before, text))


def sentence_of(text: str) -> str:
    """The sentence of a text, without its context."""
    return text.rpartition(SIGN)[2]


def with_sentence(text: str, sentence: str) -> str:
    """The text with the same context but another sentence."""
    before, sign, _ = text.rpartition(SIGN)
    return f"{before}{sign}{sentence}"


def windows(sentences: Iterable[tuple[int, str]], count: int) -> Iterator[str]:
    """Each sentence with up to `count` preceding sentences of its document, whose number is given with it.
    Blank sentences have no context and are never context."""
    before: deque[str] = deque(maxlen=count)
    last = None
    for number, text in sentences:
        if number != last:
            before.clear()
            last = number
        text = text.replace(SIGN, " ")
        blank = not text.strip()
        yield text if blank else in_context(before, text)
        if not blank:
            before.append(text)


def in_documents(lines: Iterable[str], count: int) -> Iterator[str]:
    """The same for lines, where a blank line ends a document. With a `count` of 0 the lines are returned
    unchanged."""
    if not count:
        return iter(lines)
    boundaries = Boundaries()
    return windows(((boundaries.number(not line.strip()), line) for line in lines), count)


def fitted(ids: Sequence[int], separator: int, opening: int, most: int) -> list[int]:
    """Drop the earliest sentences until at most `most` tokens remain. The sentence itself and the `opening`
    pieces are kept."""
    head, rest = list(ids[:opening]), list(ids[opening:])
    while len(head) + len(rest) > most and separator in rest:
        rest = rest[rest.index(separator) + 1 :]
    return head + rest


def last_sentences(ids: Sequence[int], separator: int, count: int) -> list[int]:
    """The last `count` sentences of a text as ids, with the separators between them."""
    places = [place for place, piece in enumerate(ids) if piece == separator]
    return list(ids[places[-count] + 1 :] if len(places) >= count else ids)
