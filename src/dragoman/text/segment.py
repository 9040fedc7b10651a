"""Normalisation to NFC, and pre-tokenization: segments that no piece of a vocabulary crosses.

A segment is a word with its space, a punctuation mark or a digit with its space, or a single space. With
`keep_identifiers` a name such as `course0.total_sum` is one word. Python and the trainer of the library use
the same pattern, so they agree. It is built here from character categories, never read from a file, and
matches in linear time. Normalisation changes nothing else.

"<" is always a segment of its own. All control pieces begin with "<" and are longer, so no text can spell
one.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dragoman.errors import UserError

if TYPE_CHECKING:  # without YAML, so that the help of commands starts quickly
    from dragoman.text.tokenizer_file import MarkPlace, TokenizerConfig


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


# Longer words are cut, so that text without spaces costs no more than other text.
_LONGEST_RUN = 128
# The Basic Multilingual Plane: other characters are rare, and would make character classes slow.
_LAST_WITH_CATEGORY = 0xFFFF


def with_mark(text: str, config: "TokenizerConfig") -> str:
    """Normalised `text` with a space that marks its outermost word like every other word."""
    if not text or config.kind in ("char", "byte"):
        return text
    return f" {text}" if config.word_mark == "start" else f"{text} "


def segment_pattern(config: "TokenizerConfig", space: str = " ", mark: "MarkPlace | None" = None) -> str:
    """The regular expression of one segment; its matches cover any text without gaps.

    The alternatives in order: "<", an identifier if they are kept, one isolated character, a run of others, a
    single space. Identifiers, isolated characters and runs include one space on the side of the word mark.
    """
    spaces, punctuation, digits = _character_classes()
    isolated = spaces + punctuation * config.split_punctuation + digits * config.split_digits
    bodies = [f"[{isolated}]", f"[^<{space}{isolated}]{{1,{_LONGEST_RUN}}}"]
    if config.keep_identifiers:
        letter, inside = (f"(?:_|[^<{space}{spaces}{punctuation}{more}])" for more in (digits, ""))
        bodies.insert(0, rf"{letter}(?:\.?{inside}){{0,{_LONGEST_RUN - 1}}}")
    body = f"(?:{'|'.join(bodies)})"
    glued = f"{space}?{body}" if (mark or config.word_mark) == "start" else f"{body}{space}?"
    return f"<|{glued}|{space}"


def segmenter(config: "TokenizerConfig") -> re.Pattern[str]:
    """`segmenter(config).findall(text)` are the segments of `text`."""
    return re.compile(segment_pattern(config))


@functools.cache
def _character_classes() -> tuple[str, str, str]:
    """Insides of bracket expressions: white space and controls; punctuation; digits and other numerals."""
    category = {code: unicodedata.category(chr(code)) for code in range(_LAST_WITH_CATEGORY + 1)}
    spaces = (c for c, name in category.items() if (name[0] == "Z" or name == "Cc") and c != ord(" "))
    # ASCII symbols count as punctuation.
    ascii_symbols = set(map(ord, "$+=>^`|~"))
    punctuation = (c for c, name in category.items() if (name[0] == "P" or c in ascii_symbols))
    digits = (c for c, name in category.items() if name[0] == "N")
    return _ranges(spaces), _ranges(punctuation), _ranges(digits)


def _ranges(codes: Iterable[int]) -> str:
    """Ascending code points as ranges for a bracket expression that Python and the library both read."""
    runs: list[list[int]] = []
    for code in codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in runs)
