"""Normalisation of sentences for comparison, and 64-bit hashes that are the same in every process."""

import hashlib
import re
import unicodedata
from functools import cache

import numpy as np

from dragoman.data.seeded import GOLDEN, splitmix

_ASCII_GAPS = "".join(chr(code) if chr(code).isalnum() else " " for code in range(128))
_GAP = re.compile(r"[^\w ]+")
_MAY_HOLD_MARKS = re.compile("[\u0300-\u1fff\u2c00-\U0010ffff]")
"""Code points outside these ranges cannot be combining marks in NFKC: Latin letters and common
punctuation."""
_LAST_MARK = 0x1F000
"""Combining marks lie below this code point, except for variation selectors, which are not letters."""


def normalise(text: str) -> str:
    """NFKC and case-folded, with every run of punctuation, symbols and white space replaced by one space.

    A text of punctuation only keeps it, so that «?» and «!» stay different.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    if folded.isascii():  # the same result as below, faster
        words = folded.translate(_ASCII_GAPS).split()
    else:
        gap = _gap_between_marks() if _MAY_HOLD_MARKS.search(folded) else _GAP
        words = gap.sub(" ", folded.replace("_", " ")).split()
    return " ".join(words or folded.split())


def hash_text(text: str) -> int:
    """64 bits of BLAKE2b. Unlike `hash()`, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "little")


def hash_pair(src: str, tgt: str) -> int:
    return hash_text(f"{src}\0{tgt}")  # no text contains NUL


def mix(hashes: np.ndarray, key: int) -> np.ndarray:
    """Map hashes and a key to other 64-bit numbers, one to one, in an order that looks random
    (splitmix64)."""
    with np.errstate(over="ignore"):
        return splitmix((hashes ^ np.uint64(key % (1 << 64))) + GOLDEN)


@cache
def _gap_between_marks() -> re.Pattern[str]:
    """`\\W` alone would also match combining marks, and with them the vowels of many scripts."""
    marks = "".join(chr(c) for c in range(_LAST_MARK) if unicodedata.category(chr(c)).startswith("M"))
    return re.compile(f"[^\\w {re.escape(marks)}]+")
