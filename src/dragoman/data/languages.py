"""The languages of a corpus: as it tells them itself, else as its first sentences read; and the corpora of
every direction among files of several languages."""

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
"""Pairs that are looked at."""
_PARTS = {
    "valid": re.compile(r"(valid|validation|val|dev)([\W\d_]|$)", re.IGNORECASE),
    "test": re.compile(r"(test|tst)([\W\d_]|$)", re.IGNORECASE),
}
"""Names of files that are not for training."""


def parts_of(directory: Path) -> dict[str, list[str]]:
    """The corpora in a directory by their names: `val.en` is for validation, `test_2016.en` a test set, and
    anything else for training."""
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
    """The languages that a corpus of a run of several names."""
    assert source.src_lang is not None and source.tgt_lang is not None
    return source.src_lang, source.tgt_lang


def check_languages(sources: Iterable[SourceConfig]) -> None:
    """Refuse a corpus that is said to be in one language of the run and reads like another one."""
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
