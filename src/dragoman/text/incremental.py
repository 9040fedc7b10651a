"""Ids -> text, one id at a time: what is final of a text, and where in it each piece stands."""

import codecs
from collections.abc import Sequence

from dragoman.text.tokenizer import Tokenizer


class IncrementalDecoder:
    """`push` every id, then `finish`: what they return, joined, is `tokenizer.decode(ids)`.

    A character comes when its last byte is there. The space that belongs to the mark of the outermost word
    never comes, so with marks at the end of words a space waits until something follows it.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        marked = tokenizer.kind not in ("char", "byte")
        self._drops_first = marked and tokenizer.config.word_mark == "start"
        self._drops_last = marked and tokenizer.config.word_mark == "end"
        self._held = ""

    def push(self, piece: int) -> str:
        return self._emit(self._utf8.decode(self._tokenizer.bytes_of(piece)))

    @property
    def has_part_of_a_character(self) -> bool:
        return bool(self._utf8.getstate()[0])

    def finish(self) -> str:
        """What was still waiting. A space that waited to the end was the mark."""
        return self._emit(self._utf8.decode(b"", final=True))

    def _emit(self, text: str) -> str:
        if not text:
            return ""
        if self._drops_first:
            self._drops_first = False
            return text.removeprefix(" ")
        if not self._drops_last:
            return text
        text, self._held = self._held + text, ""
        if text.endswith(" "):
            self._held = " "
        return text.removesuffix(" ")


def offsets(tokenizer: Tokenizer, ids: Sequence[int]) -> list[tuple[int, int]]:
    """For each id where it stands in `tokenizer.decode(ids)`, spaces around it not counted. Pieces that share
    a character all stand there; a piece without any visible character has no length."""
    decoder, found, length = IncrementalDecoder(tokenizer), [], 0
    for piece in ids:
        new = decoder.push(piece)
        length += len(new)
        first = length - len(new.lstrip(" "))
        found.append((first, first + len(new.strip(" ")) + decoder.has_part_of_a_character))
    return found
