"""Detect the languages of a corpus, from its names or else its first sentences, and find the corpora of every
direction in a set of files."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from dragoman.data.config import SourceConfig
from dragoman.data.directions import parse_directions
from dragoman.data.formats import Pair, guess_languages, read_pairs, sources_by_direction
from dragoman.data.formats.bitext import UNKNOWN, as_pair_of_languages, primary
from dragoman.data.formats.detect import is_corpus
from dragoman.data.formats.language_codes import language_named
from dragoman.errors import UserError
from dragoman.text.identify import can_identify, language_of

_SAMPLE = 200
"""Number of pairs that are examined."""
_PARTS = {
    "valid": re.compile(r"(valid|validation|val|dev)([\W\d_]|$)", re.IGNORECASE),
    "test": re.compile(r"(test|tst)([\W\d_]|$)", re.IGNORECASE),
}
"""File names that mark validation and test data."""


def corpora_in(directory: Path) -> dict[str, list[str]]:
    """The corpora in a directory by their use: `val.en` is validation data, `test_2016.en` a test set,
    anything else training data."""
    parts: dict[str, list[str]] = {"train": [], "valid": [], "test": []}
    for path in sorted(directory.iterdir()):
        if path.is_file() and is_corpus(path.name):
            part = next((part for part, name in _PARTS.items() if name.match(path.name)), "train")
            parts[part].append(str(path))
    if not parts["train"]:
        raise UserError(f"{directory}: no corpus in it, such as name.en and name.de, or a TMX file")
    return parts


def corpora_by_direction(files: Sequence[str], directions: str = "all") -> list[SourceConfig]:
    """A corpus for each of the chosen directions that the files have."""
    found = sources_by_direction(files)
    chosen = parse_directions(directions, (languages_told(source) for source in found))
    kept = [source for pair in chosen for source in found if languages_told(source) == pair]
    check_languages(kept)
    return kept


def languages_told(source: SourceConfig) -> tuple[str, str]:
    """The languages that a corpus of a multilingual run names."""
    assert source.src_lang is not None and source.tgt_lang is not None
    return source.src_lang, source.tgt_lang


def check_languages(sources: Iterable[SourceConfig]) -> None:
    """Refuse a corpus that is labelled with one language of the run but reads like another one."""
    if not can_identify():
        return
    kept = list(sources)
    languages = {primary(code): code for source in kept for code in languages_told(source)}
    seen: set[tuple[tuple[str, ...], str]] = set()
    for source in kept:
        pairs = list(islice(read_pairs(source, *languages_told(source)), _SAMPLE))
        for place, code in enumerate(languages_told(source)):
            files = source.files[place : place + 1] if len(source.files) == 2 else source.files
            if (files, code) in seen:
                continue
            seen.add((files, code))
            read = language_of(pair.tgt if place else pair.src for pair in pairs)
            if read in languages and read != primary(code):
                raise UserError(f"{files[0]}: said to be in '{code}', but it reads like '{languages[read]}'")


def _named(source: SourceConfig) -> tuple[str, str] | None:
    """The languages that two columns, or two languages of a translation memory, are named after."""
    return as_pair_of_languages(language_named(source.src or ""), language_named(source.tgt or ""))


def languages_of(source: SourceConfig) -> tuple[str, str] | None:
    """The languages of a corpus. None if neither the file nor its text identifies both, or if they would be
    equal."""
    told = _named(source) if source.src is not None else guess_languages(source)
    if told is not None or source.format == "text":
        return told
    if not can_identify():
        return None  # training works without them
    pairs: list[Pair] = []
    with suppress(UserError):  # the reader of the corpus reports a bad line later, with its context
        pairs.extend(islice(read_pairs(source, *UNKNOWN), _SAMPLE))
    src, tgt = language_of(pair.src for pair in pairs), language_of(pair.tgt for pair in pairs)
    return (src, tgt) if src is not None and tgt is not None and src != tgt else None
