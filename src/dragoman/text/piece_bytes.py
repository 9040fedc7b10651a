"""The bytes of every piece of a vocabulary, for constraints on output text."""

import functools
from collections.abc import Sequence

import numpy as np

from dragoman.text.word_boundaries import is_word_character


class Spelling:
    """The UTF-8 bytes of every id, and whether words can continue across its edges.

    A byte piece may be part of any character, so it is unknown whether it continues a word. `may_continue`
    and `may_be_continued` are True for such a piece; `symbols` treats it as a boundary.
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = tuple(pieces)
        # The last such piece: the byte piece 0x20 is also a space, but text is never encoded with it.
        self.space_id = max(place for place, piece in enumerate(self.pieces) if piece == b" ")
        self.widths = np.array([len(piece) for piece in self.pieces], dtype=np.int64)
        self.may_continue = np.array([_edge(piece, first=True) for piece in self.pieces], dtype=bool)
        self.may_be_continued = np.array([_edge(piece, first=False) for piece in self.pieces], dtype=bool)

    def __len__(self) -> int:
        return len(self.pieces)

    @functools.cached_property
    def symbols(self) -> np.ndarray:
        """V × longest piece: each byte, plus 256 if its character is a word character; −1 after the end."""
        table = np.full((len(self.pieces), int(self.widths.max())), -1, dtype=np.int64)
        for row, piece in zip(table, self.pieces, strict=True):
            row[: len(piece)] = symbols_of(piece)
        return table


def symbols_of(piece: bytes) -> list[int]:
    """The bytes of a text, plus 256 if their character is a word character."""
    symbols: list[int] = []
    for character in piece.decode("utf-8", errors="surrogateescape"):
        known = not "\udc80" <= character <= "\udcff"
        extra = 256 if known and is_word_character(character) else 0
        symbols += [byte + extra for byte in character.encode("utf-8", errors="surrogateescape")]
    return symbols


def may_be_in_word(character: str) -> bool:
    """Whether a character, or a byte in `surrogateescape` form, may be part of a word."""
    return "\udc80" <= character <= "\udcff" or is_word_character(character)


def _edge(piece: bytes, first: bool) -> bool:
    """Whether a word may continue across the first (or last) character of the piece."""
    text = piece.decode("utf-8", errors="surrogateescape")
    # A control piece writes nothing, so it does not separate words.
    return not text or may_be_in_word(text[0] if first else text[-1])
