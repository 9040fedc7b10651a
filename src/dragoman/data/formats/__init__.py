"""Readers of parallel text, and of text alone, one file a format, all of them strict streams of pairs. They
need no torch."""

from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import PurePath

from dragoman.data.config import SourceConfig
from dragoman.data.formats import (
    csv,
    dialogue,
    gettext,
    jsonl,
    moses,
    parquet,
    plain,
    subtitles,
    text,
    tmx,
    tsv,
    xliff,
)
from dragoman.data.formats.detect import (
    detect_format,
    group_files,
    guess_languages,
    language_suffix,
    stem_of,
)
from dragoman.data.formats.lines import read_lines
from dragoman.data.formats.pair import Pair
from dragoman.data.formats.table import choose_columns, named_languages, read_rows, row_pairs
from dragoman.errors import UserError

__all__ = [
    "Pair",
    "describe_columns",
    "detect_format",
    "group_files",
    "guess_languages",
    "read_lines",
    "read_pairs",
    "sources_by_direction",
]


def sources_by_direction(files: Sequence[str]) -> list[SourceConfig]:
    """One corpus per direction between files of several languages."""
    plain: dict[str, dict[str, str]] = {}
    found: list[SourceConfig] = []
    for file in files:
        if (language := language_suffix(file)) is not None:
            plain.setdefault(stem_of(file), {})[language] = file
        else:
            found += _tables_by_direction(file)
    for stem, own in plain.items():
        if len(own) == 1:
            raise UserError(
                f"{next(iter(own.values()))}: there is no {PurePath(stem).name} in another language"
            )
        for src, tgt in permutations(own, 2):
            sides = own[src], own[tgt]
            found.append(SourceConfig(sides, detect_format(sides), src_lang=src, tgt_lang=tgt))
    return found


def _tables_by_direction(file: str) -> list[SourceConfig]:
    format = detect_format((file,))
    if format == "tmx":
        pairs = tmx.pairs_of_languages(file)
        return [SourceConfig((file,), format, src_lang=src, tgt_lang=tgt) for src, tgt in pairs]
    if format in ("csv", "tsv"):
        rows = csv.rows if format == "csv" else tsv.rows
        if (told := row_pairs(rows(file), file)) is not None:
            both = dict.fromkeys(pair for own in told for pair in (own, own[::-1]))
            return [SourceConfig((file,), format, src_lang=src, tgt_lang=tgt) for src, tgt in both]
        if columns := named_languages(rows(file)):
            return [
                SourceConfig((file,), format, 1.0, columns[src], columns[tgt], None, src, tgt)
                for src, tgt in permutations(columns, 2)
            ]
    languages = guess_languages(SourceConfig((file,), format))
    if languages is None:
        raise UserError(f"{file}: it does not say in which languages it is")
    return [SourceConfig((file,), format, src_lang=languages[0], tgt_lang=languages[1])]


_READERS = {
    "tsv": tsv.read,
    "csv": csv.read,
    "jsonl": jsonl.read,
    "parquet": parquet.read,
    "tmx": tmx.read,
    "xliff": xliff.read,
    "po": gettext.read_po,
    "mo": gettext.read_mo,
    "zip": moses.read,
    "text": text.read,
    "dialogue": dialogue.read,
}


def describe_columns(source: SourceConfig, src_lang: str, tgt_lang: str) -> str | None:
    """The columns or fields that are read of a table, in words. None if it is no table."""
    format = detect_format(source.files) if source.format == "auto" else source.format
    if format in ("jsonl", "parquet"):
        return (jsonl if format == "jsonl" else parquet).describe(source, src_lang, tgt_lang)
    if format not in ("csv", "tsv"):
        return None
    rows = csv.rows(source.files[0]) if format == "csv" else tsv.rows(source.files[0])
    columns, _, _ = choose_columns(rows, source, src_lang, tgt_lang)
    return str(columns)


def read_pairs(
    source: SourceConfig, src_lang: str, tgt_lang: str, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """Stream the pairs of one corpus. An error ends the stream, so that the sides never become misaligned.
    Rows of a table with too many or too few cells are skipped if the caller collects them in a list."""
    format = detect_format(source.files) if source.format == "auto" else source.format
    if format in ("plain", "subtitles"):
        if len(source.files) != 2:
            raise UserError(f"{source.files[0]}: {format} text needs two files, source and target")
        return (plain if format == "plain" else subtitles).read(*source.files)
    if len(source.files) != 1:
        raise UserError(f"{', '.join(source.files)}: a corpus in the format {format} is one file")
    if skipped is not None and format in ("csv", "tsv"):
        rows = csv.rows(source.files[0]) if format == "csv" else tsv.rows(source.files[0])
        return read_rows(rows, source, src_lang, tgt_lang, skipped)
    return _READERS[format](source, src_lang, tgt_lang)
