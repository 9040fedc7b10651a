"""Why a pair is left out. Both sides always go together; the first reason that holds is the one counted."""

import numpy as np

from dragoman.data.config import SUSPECTS, CleanConfig

REASONS = ("empty", "copy", "duplicate", "too_long", "ratio", *SUSPECTS)
"""Why pairs are left out. The codes of the reasons are in files: new ones go to the end."""
ASKED = (*REASONS[:3], *SUSPECTS, *REASONS[3:5])
"""The reasons in the order in which they are asked."""
KEPT = 0
EMPTY, COPY, DUPLICATE, TOO_LONG, RATIO = range(1, 6)
HELD_OUT = 255
"""Not left out, but moved into the validation set."""

SHORT = 12
"""Tokens up to which an odd length ratio says nothing: one word may well be a dozen pieces."""


def code_of(reason: str) -> int:
    return REASONS.index(reason) + 1


def reason_of(code: int) -> str:
    return REASONS[code - 1]


def is_empty(src: str, tgt: str) -> bool:
    return not src or not tgt or src.isspace() or tgt.isspace()


def is_copy(src: str, tgt: str) -> bool:
    """Whether the target is the source itself, but for the white space around it."""
    return src == tgt or src.strip() == tgt.strip()


def length_codes(src_lengths: np.ndarray, tgt_lengths: np.ndarray, clean: CleanConfig) -> np.ndarray:
    """KEPT, TOO_LONG or RATIO for each pair of lengths."""
    longer = np.maximum(src_lengths, tgt_lengths)
    shorter = np.maximum(1, np.minimum(src_lengths, tgt_lengths))
    odd = (longer > SHORT) & (longer > clean.max_ratio * shorter)
    return np.where(longer > clean.max_length, TOO_LONG, np.where(odd, RATIO, KEPT)).astype(np.uint8)
