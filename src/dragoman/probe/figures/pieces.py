"""Pieces as figures show them."""

from dragoman.text.tokenizer_file import MARK


def visible_spaces(piece: str) -> str:
    """The mark of a space as ␣: fonts draw ▁ as a thick bar. The pages do the same (`drawing/dom.js`)."""
    return piece.replace(MARK, "␣")
