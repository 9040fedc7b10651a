"""The languages of a corpus: as it tells them itself, else as its first sentences read."""

from itertools import islice

from dragoman.data.config import SourceConfig
from dragoman.data.formats import guess_languages, read_pairs
from dragoman.data.formats.bitext import UNKNOWN
from dragoman.text.identify import language_of

_SAMPLE = 200
"""Pairs that are looked at."""


def languages_of(source: SourceConfig) -> tuple[str, str] | None:
    """None where neither the file nor its text tells both, or they would be the same."""
    told = guess_languages(source)
    if told is not None or source.format == "text":
        return told
    pairs = list(islice(read_pairs(source, *UNKNOWN), _SAMPLE))
    src, tgt = language_of(pair.src for pair in pairs), language_of(pair.tgt for pair in pairs)
    return (src, tgt) if src is not None and tgt is not None and src != tgt else None
