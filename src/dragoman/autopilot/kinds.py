"""Kinds of tasks recognised from a profile, for choices that differ between them."""

from dragoman.autopilot.profile import Profile
from dragoman.autopilot.tokens import looks_of

_LONG_SOURCE, _TIMES_SHORTER, _SEVERAL_WORDS = 50, 5, 3
_FROM_SOURCE = 0.2
"""Share of the rare words of targets that occur in their own source. In dialogues it is about a tenth."""


def is_summary(profile: Profile) -> bool:
    """Whether targets are short summaries of long sources."""
    pairs = max(1, profile.pairs)
    src, tgt = profile.src.words / pairs, profile.tgt.words / pairs
    sentences = looks_of(profile.tgt, profile.pairs).name == "sentences"
    short = src >= _LONG_SOURCE and src >= _TIMES_SHORTER * tgt and tgt >= _SEVERAL_WORDS
    return sentences and short and profile.copied_words >= _FROM_SOURCE
