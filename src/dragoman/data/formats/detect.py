"""Which format a file is in, which files belong together, and which languages they hold."""

import itertools
from collections.abc import Sequence
from pathlib import Path, PurePath

from dragoman.data.config import SourceConfig
from dragoman.data.formats import csv, dialogue, gettext, jsonl, moses, parquet, subtitles, tmx, tsv, xliff
from dragoman.data.formats.language_codes import is_language
from dragoman.data.formats.lines import open_binary, read_lines
from dragoman.data.formats.xml import root_name
from dragoman.errors import UserError

_SUFFIXES = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".tmx": "tmx",
    ".dialogues": "dialogue",
    **dict.fromkeys((".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"), "xliff"),
    ".po": "po",
    ".mo": "mo",
    ".gmo": "mo",
    ".zip": "zip",
}
_SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")
_OFFICE = (".docx", ".doc", ".odt", ".rtf", ".pdf", ".pptx", ".odp", ".epub", ".pages")
_MAGIC = {b"PAR1": "parquet", b"PK\3\4": "zip", b"\xde\x12\x04\x95": "mo", b"\x95\x04\x12\xde": "mo"}
_LANGUAGES_OF = {
    "tsv": tsv.languages_of,
    "csv": csv.languages_of,
    "jsonl": jsonl.languages_of,
    "parquet": parquet.languages_of,
    "tmx": tmx.languages_of,
    "xliff": xliff.languages_of,
    "po": gettext.languages_of_po,
    "mo": gettext.languages_of_mo,
    "zip": moses.languages_of,
}


def detect_format(files: Sequence[str]) -> str:
    """The format of one corpus: by the number of files, then by suffix, then by content."""
    timed = [file for file in files if _without_gz(file).suffix.lower() in subtitles.SUFFIXES]
    if (timed and len(timed) != len(files)) or len(timed) == 1:
        raise UserError(f"{timed[0]}: subtitles are read in pairs, those of the source and of the target")
    if len(files) == 2:
        return "subtitles" if timed else "plain"
    if len(files) != 1:
        raise UserError(
            f"a corpus is one file or two (source and target), found {len(files)}: {', '.join(files)}"
        )
    path = files[0]
    refuse_office(path)
    by_suffix = _SUFFIXES.get(_bare(path).suffix.lower())
    if by_suffix == "jsonl" and _has_dialogues(path):
        return "dialogue"
    if by_suffix:
        return by_suffix
    with open_binary(path) as file:
        magic = _MAGIC.get(file.peek(4)[:4])
    if magic is not None:
        return magic
    if (root := root_name(path)) in ("tmx", "xliff"):
        return root
    head = next((line for line in itertools.islice(read_lines(path), 100) if line.strip()), "")
    if dialogue.is_dialogue(head):
        return "dialogue"
    if head.lstrip().startswith("{"):
        return "jsonl"
    if head.startswith(("msgid ", "#,", "#.", "#:", "# ")) and _is_po(path):
        return "po"
    if "\t" in head:
        return "tsv"
    raise UserError(
        f"{path}: one file without pairs; give two files, source and target, or one of"
        f" {', '.join(dict.fromkeys(_SUFFIXES.values()))} (text in one language: dragoman pretrain)"
    )


def refuse_office(path: str) -> None:
    """Raise an error for files of office programs, which hold no pairs."""
    suffix = PurePath(path).suffix.lower()
    if suffix in _SPREADSHEETS:
        raise UserError(
            f"{path}: spreadsheets are not read; save it as CSV in UTF-8, source and target in two columns"
        )
    if suffix in _OFFICE:
        raise UserError(
            f"{path}: a document holds no pairs; training needs a translation memory, a table or two text"
            " files"
        )


def group_files(files: Sequence[str], format: str = "auto") -> tuple[SourceConfig, ...]:
    """The corpora among file names as given on a command line.

    A table stands by itself. Plain files go two by two: by name where every name occurs in the same two
    languages (`a.en b.en a.de b.de`), else in the order in which they are given.
    """
    if not files:
        raise UserError("expected at least one file, found none")
    if len(files) == 1 or format not in ("auto", "plain"):
        return tuple(SourceConfig((file,), format=format) for file in files)
    plain = [f for f in files if format == "plain" or _bare(f).suffix.lower() not in _SUFFIXES]
    if len(plain) % 2:
        names = ", ".join(plain)
        raise UserError(f"plain files come two by two, source and target; found {len(plain)}: {names}")
    for file in plain:
        refuse_office(file)
    if format == "auto" and len(plain) == 2 and plain[0] == plain[1]:
        raise UserError(f"{plain[0]}: the same file is given as source and as target")
    two_by_two = _by_name(plain) or list(zip(plain[::2], plain[1::2], strict=True))
    tables = [SourceConfig((file,)) for file in files if file not in plain]
    plain_format = None if format == "auto" else format
    return (*(SourceConfig(two, format=plain_format or detect_format(two)) for two in two_by_two), *tables)


def guess_languages(source: SourceConfig) -> tuple[str, str] | None:
    """The languages of a corpus as it tells them itself (a memory, a catalogue), or as its file names do
    (`train.en.gz`, `train.de.gz`), else None."""
    if len(source.files) != 2:
        format = source.format if source.format != "auto" else detect_format(source.files)
        return _LANGUAGES_OF[format](source.files[0]) if format in _LANGUAGES_OF else None
    src, tgt = (_bare(file).suffix.removeprefix(".") for file in source.files)
    return (src, tgt) if is_language(src) and is_language(tgt) and src != tgt else None


def _has_dialogues(path: str) -> bool:
    try:
        return dialogue.is_dialogue(next(filter(str.strip, read_lines(path)), ""))
    except UserError:  # the reader says what is wrong with it
        return False


def _is_po(path: str) -> bool:
    """Whether a file that begins with a comment continues as a PO catalogue."""
    lines = (line for line in itertools.islice(read_lines(path), 1000) if line.strip())
    return next((line for line in lines if not line.startswith("#")), "").startswith(("msgid ", "msgctxt "))


def _by_name(files: Sequence[str]) -> list[tuple[str, str]] | None:
    suffixes = list(dict.fromkeys(_bare(file).suffix for file in files))
    if len(suffixes) != 2:
        return None
    stems = {suffix: [stem_of(f) for f in files if _bare(f).suffix == suffix] for suffix in suffixes}
    src, tgt = (stems[suffix] for suffix in suffixes)
    if len(set(src)) != len(src) or sorted(src) != sorted(tgt):
        return None
    of_stem = {stem_of(f): f for f in files if _bare(f).suffix == suffixes[1]}
    return [(f, of_stem[stem_of(f)]) for f in files if _bare(f).suffix == suffixes[0]]


def is_corpus(path: str) -> bool:
    """Whether a file is a corpus by its name."""
    return language_suffix(path) is not None or _bare(path).suffix.lower() in _SUFFIXES


def _without_gz(path: str) -> PurePath:
    pure = PurePath(path)
    return pure.with_suffix("") if pure.suffix.lower() == ".gz" else pure


def _bare(path: str) -> PurePath:
    """The path without `.gz`, and without `.srt` after a language: `film.de.srt`."""
    pure = _without_gz(path)
    inner = pure.with_suffix("")
    timed = pure.suffix.lower() in subtitles.SUFFIXES and is_language(inner.suffix.removeprefix("."))
    return inner if timed else pure


def language_suffix(path: str) -> str | None:
    """The language that the name of a plain file ends in: `train.de.gz`."""
    suffix = _bare(path).suffix.removeprefix(".")
    return suffix if is_language(suffix) and f".{suffix.lower()}" not in _SUFFIXES else None


def stem_of(path: str) -> str:
    """The path without the language and `.gz`."""
    return str(Path(_bare(path)).with_suffix(""))
