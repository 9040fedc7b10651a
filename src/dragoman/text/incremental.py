"""Decoding one id at a time, and the position of each piece in the decoded text."""

import codecs
from collections.abc import Sequence

from dragoman.text.tokenizer import Tokenizer


class IncrementalDecoder:
    """`push` every id, then `finish`: the concatenated results are `tokenizer.decode(ids)`.

    A character is returned once its last byte is there. The space of the outermost word mark is never
    returned; with marks at the end of words, a space is held until something follows it.
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
        """The rest of the text. A space held until now was the mark."""
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
    """The span of each id in `tokenizer.decode(ids)`, without spaces around it. Pieces that share a character
    have the same span; a piece without a visible character has an empty one."""
    decoder, found, length = IncrementalDecoder(tokenizer), [], 0
    for piece in ids:
        new = decoder.push(piece)
        length += len(new)
        first = length - len(new.lstrip(" "))
        found.append((first, first + len(new.strip(" ")) + decoder.has_part_of_a_character))
    return found
