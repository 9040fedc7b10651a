"""Words as pieces, with the characters that every piece covers.

Each word is encoded separately, so that its first piece is known. Inside a word, the spelling of a piece
gives its place. If the spelling and the text differ (a model may lower-case or compose characters), every
piece covers the whole word.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Piece:
    id: int
    start: int
    end: int
    """End offset in characters, exclusive."""


def encode_words(tokenizer: Tokenizer, words: Sequence[str]) -> list[list[int]]:
    """The pieces of every word, without the opening pieces that a published model puts before a text."""
    opening = len(tokenizer.opening)
    return [ids[opening:] for ids in tokenizer.encode_batch(list(words))]


def split_words(text: str) -> list[tuple[int, str]]:
    """The words separated by white space, with their start offsets."""
    found, place = [], 0
    for word in text.split():
        place = text.index(word, place)
        found.append((place, word))
        place += len(word)
    return found


def locate_pieces(tokenizer: Tokenizer, text: str) -> list[Piece]:
    """The pieces of a text with the characters that each one covers."""
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
        # A piece may be part of a character. It then starts where the character starts and ends where it
        # ends.
        begin, end = boundaries[first][0], boundaries[last][1]
        found.append(Piece(piece, start + begin, start + max(begin, end)))
        done += len(content)
    return found


def _byte_boundaries(word: str) -> list[tuple[int, int]]:
    """For each byte offset: the index of the character that it is in or before, and the number of characters
    that have begun before it."""
    found = []
    for number, char in enumerate(word):
        width = len(char.encode("utf-8"))
        found += [(number, number)] + [(number, number + 1)] * (width - 1)
    return [*found, (len(word), len(word))]
