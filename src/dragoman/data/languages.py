"""The languages of a corpus: as it tells them itself, else as its first sentences read."""

from contextlib import suppress
from itertools import islice

from dragoman.data.config import SourceConfig
from dragoman.data.formats import Pair, guess_languages, read_pairs
from dragoman.data.formats.bitext import UNKNOWN, as_pair_of_languages
from dragoman.data.formats.language_codes import language_named
from dragoman.errors import UserError
from dragoman.text.identify import can_identify, language_of

_SAMPLE = 200
"""Pairs that are looked at."""


def _named(source: SourceConfig) -> tuple[str, str] | None:
    """The languages that two columns, or two languages of a memory, are named after."""
    return as_pair_of_languages(language_named(source.src or ""), language_named(source.tgt or ""))


def languages_of(source: SourceConfig) -> tuple[str, str] | None:
    """None where neither the file nor its text tells both, or they would be the same."""
    told = _named(source) if source.src is not None else guess_languages(source)
    if told is not None or source.format == "text":
        return told
    if not can_identify():
        return None  # training does without
    pairs: list[Pair] = []
    with suppress(UserError):  # a bad line is told by who reads the corpus, and by then it is known what for
        pairs.extend(islice(read_pairs(source, *UNKNOWN), _SAMPLE))
    src, tgt = language_of(pair.src for pair in pairs), language_of(pair.tgt for pair in pairs)
    return (src, tgt) if src is not None and tgt is not None and src != tgt else None
