"""Word confidence of a translation: the probability of the least probable piece of each word.

It measures how certain the model was, not whether the word is right.
"""

import math
import re
from collections.abc import Sequence

from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.text.word_boundaries import Place, words

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_MARK = "▁"


def word_confidences(hypothesis: Hypothesis) -> tuple[float, ...] | None:
    """The confidence of each word (`text/word_boundaries.py`) of the text. None if the pieces do not spell
    the text, for example because tags were put back."""
    places = _places(hypothesis.pieces, hypothesis.text)
    if places is None or len(hypothesis.token_scores) < len(places):
        return None
    found: list[float] = []
    for start, end in words(hypothesis.text):
        own = [
            score
            for (first, last), score in zip(places, hypothesis.token_scores, strict=False)
            if first < end and start < last
        ]
        found.append(math.exp(min(own, default=0.0)))
    return tuple(found)


def _places(pieces: Sequence[str], text: str) -> list[Place] | None:
    """The place of each piece in the text. All bytes of one character have the same place."""
    places: list[Place] = []
    at, held = 0, b""
    for piece in pieces:
        if byte := _BYTE.fullmatch(piece):
            held += bytes.fromhex(byte[1])
            try:
                visible = held.decode("utf-8")
            except UnicodeDecodeError:
                visible = ""
        elif held:
            return None
        else:
            visible = piece.replace(_MARK, " ").strip()
        while at < len(text) and text[at].isspace():
            at += 1
        if not text.startswith(visible, at):
            return None
        places.append((at, at + max(len(visible), 1 if held else 0)))
        if visible:
            at, held = at + len(visible), b""
    return places if not text[at:].strip() else None
