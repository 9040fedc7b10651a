"""The one normal form of text: Unicode NFC. Nothing else is changed, so nothing else can be lost."""

import unicodedata

from dragoman.errors import UserError


def nfc(text: str) -> str:
    """Unicode normal form C of `text`; text with a lone surrogate is refused, since UTF-8 cannot hold it."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise UserError(
            f"text: character {error.start + 1} is a lone surrogate (U+{code:04X}), no Unicode text; "
            "read the text as UTF-8 or remove the character"
        ) from None
    return unicodedata.normalize("NFC", text)


def one_line(text: str) -> str:
    """A model can write a line feed, or a NUL that no reader takes; the line it belongs to stays one line."""
    return text.replace("\n", " ").replace("\0", " ")
