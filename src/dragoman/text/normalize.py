"""Unicode normalisation to NFC. Nothing else is changed."""

import unicodedata

from dragoman.errors import UserError


def nfc(text: str) -> str:
    """`text` in NFC. A lone surrogate is refused, since UTF-8 cannot represent it."""
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
    """Replace line feeds and NULs, which a model can generate, so that a line stays one line."""
    return text.replace("\n", " ").replace("\0", " ")


def escaped(text: str) -> str:
    """One line that keeps them: a line feed is written as `\\n`, a backslash as two."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\0", " ")
