"""Words as pieces, and where every piece stands in the text.

A word is encoded by itself, so that its first piece is known. Inside a word a piece stands where its spelling
says; where spelling and text do not agree (a model may lower-case, or compose characters), every piece stands
for the whole word.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Piece:
    id: int
    start: int
    end: int
    """Characters of the text, the end not among them."""


def encode_words(tokenizer: Tokenizer, words: Sequence[str]) -> list[list[int]]:
    """The pieces of every word, without those that a published model puts before a text."""
    opening = len(tokenizer.opening)
    return [ids[opening:] for ids in tokenizer.encode_batch(list(words))]


def split_words(text: str) -> list[tuple[int, str]]:
    """What stands between white space, and where it begins."""
    found, place = [], 0
    for word in text.split():
        place = text.index(word, place)
        found.append((place, word))
        place += len(word)
    return found


def locate_pieces(tokenizer: Tokenizer, text: str) -> list[Piece]:
    """The pieces of a text with the characters that each of them writes."""
    words = split_words(text)
    encoded = encode_words(tokenizer, [word for _, word in words])
    return [
        piece
        for (start, word), ids in zip(words, encoded, strict=True)
        for piece in _in_word(tokenizer, ids, start, word)
    ]


def _in_word(tokenizer: Tokenizer, ids: Sequence[int], start: int, word: str) -> list[Piece]:
    spelt = [tokenizer.bytes_of(piece) for piece in ids]
    whole = b"".join(spelt)
    before = len(whole) - len(whole.lstrip(b" "))
    if whole.strip(b" ") != word.encode("utf-8"):
        return [Piece(piece, start, start + len(word)) for piece in ids]
    boundaries = _byte_boundaries(word)
    found, done = [], -before
    for piece, content in zip(ids, spelt, strict=True):
        first, last = max(0, done), min(max(0, done + len(content)), len(boundaries) - 1)
        # A piece may be a part of a character: it begins where the character does, and ends behind it.
        begin, end = boundaries[first][0], boundaries[last][1]
        found.append(Piece(piece, start + begin, start + max(begin, end)))
        done += len(content)
    return found


def _byte_boundaries(word: str) -> list[tuple[int, int]]:
    """For each place between bytes: the character that it is in or before, and the number of characters that
    are begun before it."""
    found = []
    for number, char in enumerate(word):
        width = len(char.encode("utf-8"))
        found += [(number, number)] + [(number, number + 1)] * (width - 1)
    return [*found, (len(word), len(word))]
