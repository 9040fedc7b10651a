"""Reasons for leaving out a pair. Both sides are always dropped together, and only the first reason is
counted."""

import numpy as np

from dragoman.data.config import SUSPECTS, CleanConfig

REASONS = ("empty", "copy", "duplicate", "too_long", "ratio", *SUSPECTS)
"""Names of the reasons. Files store their codes, so new reasons go to the end."""
CHECK_ORDER = (*REASONS[:3], *SUSPECTS, *REASONS[3:5])
"""The reasons in the order in which they are checked."""
KEPT_CODE = 0
EMPTY, COPY, DUPLICATE, TOO_LONG, RATIO = range(1, 6)
HELD_OUT = 255
"""The pair is not dropped but moved to the validation set."""

SHORT_FOR_RATIO = 12
"""Token count up to which the length ratio is ignored: a single word may be a dozen pieces."""


def code_of(reason: str) -> int:
    return REASONS.index(reason) + 1


def reason_of(code: int) -> str:
    return REASONS[code - 1]


def is_empty(src: str, tgt: str) -> bool:
    return not src or not tgt or src.isspace() or tgt.isspace()


def is_copy(src: str, tgt: str) -> bool:
    """Whether the target equals the source, apart from surrounding white space."""
    return src == tgt or src.strip() == tgt.strip()


def length_codes(src_lengths: np.ndarray, tgt_lengths: np.ndarray, clean: CleanConfig) -> np.ndarray:
    """KEPT, TOO_LONG or RATIO for each pair of lengths."""
    longer = np.maximum(src_lengths, tgt_lengths)
    shorter = np.maximum(1, np.minimum(src_lengths, tgt_lengths))
    odd = (longer > SHORT_FOR_RATIO) & (longer > clean.max_ratio * shorter)
    return np.where(longer > clean.max_length, TOO_LONG, np.where(odd, RATIO, KEPT_CODE)).astype(np.uint8)
