"""Text -> segments: the spans that no piece of a vocabulary ever crosses.

A segment is a word with its space, a punctuation mark or a digit with its space, or a lone space. One pattern
drives both Python's splitter and the one of the library's trainer, so that the two cannot disagree. It is
made here from character categories, never read from a file, and matches in linear time.

"<" always stands alone. All control pieces begin with "<" and are longer, so no merge and no word of any text
can spell one of them.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable

from dragoman.text.tokenizer_config import MarkPlace, TokenizerConfig

MARK = "▁"
"""How a space is shown in a piece. Inside, a space stays a space: a literal ▁ is spelt in bytes."""

# Beyond this many characters a word is cut, so that text without any spaces costs no more than other text.
_LONGEST_RUN = 128
# The Basic Multilingual Plane: what lies beyond it is rare, and would make Python's sets of characters slow.
_LAST_WITH_CATEGORY = 0xFFFF


def with_mark(text: str, config: TokenizerConfig) -> str:
    """Normalised `text` with the space that makes its outermost word look like every other word."""
    if not text or config.kind in ("char", "byte"):
        return text
    return f" {text}" if config.word_mark == "start" else f"{text} "


def segment_pattern(config: TokenizerConfig, space: str = " ", mark: MarkPlace | None = None) -> str:
    """The regular expression of one segment; its matches cover any text without gaps.

    Trying the alternatives in order: "<" alone, one isolated character, a run of others, a space alone; the
    second and the third take one space along, on the side where the mark is glued.
    """
    spaces, punctuation, digits = _character_classes()
    isolated = spaces + punctuation * config.split_punctuation + digits * config.split_digits
    body = rf"(?:[{isolated}]|[^<{space}{isolated}]{{1,{_LONGEST_RUN}}})"
    glued = f"{space}?{body}" if (mark or config.word_mark) == "start" else f"{body}{space}?"
    return f"<|{glued}|{space}"


def segmenter(config: TokenizerConfig) -> re.Pattern[str]:
    """`segmenter(config).findall(text)` are the segments of `text`."""
    return re.compile(segment_pattern(config))


@functools.cache
def _character_classes() -> tuple[str, str, str]:
    """Insides of bracket expressions: white space and controls; punctuation; digits and other numerals."""
    category = {code: unicodedata.category(chr(code)) for code in range(_LAST_WITH_CATEGORY + 1)}
    spaces = (c for c, name in category.items() if (name[0] == "Z" or name == "Cc") and c != ord(" "))
    # The symbols among ASCII count as punctuation, as people use them.
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
