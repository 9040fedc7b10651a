"""Which two columns (or fields) of a table are the source and the target."""

import re
from collections.abc import Sequence

from dragoman.data.formats.language_codes import language_named
from dragoman.errors import UserError

_SIDES = (
    ("src", "tgt"),
    ("source", "target"),
    ("input", "output"),
    ("input", "target"),
    ("document", "summary"),
    ("text", "summary"),
)
DOCUMENT_NAMES = ("document", "document_id", "doc", "doc_id", "docid")
_BESIDE_A_LANGUAGE = re.compile(r"[\s_.-]*\b(text|sentence|segment|string|side)\b[\s_.-]*", re.IGNORECASE)
_FIELD_NAME = re.compile(r"(?!\d+$)[\w .()/-]{1,40}")
_METADATA = re.compile(
    r"[\d\s.,:;%+/-]*"  # numbers, dates, times
    r"|https?://\S+"
    r"|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # UUID
    r"|[0-9a-f]{32,64}",  # hash
    re.IGNORECASE,
)
_OF_ROW = re.compile(
    r"((?P<source>src|source)|(?P<target>tgt|trg|target))[\s_.-]*(lang|language)", re.IGNORECASE
)
_ROWS_FOR_A_CONSTANT = 5
"""Number of rows after which a column with a constant value is taken to hold no text."""


def find_sides(names: Sequence[str], src_lang: str, tgt_lang: str) -> tuple[int, int] | None:
    """The positions of the two sides among `names`, or None where the names do not tell.

    Looked for in turn: the languages of the run, names such as src/tgt and source/target, and last the first
    two columns that are named after a language. Other columns beside them are left alone.
    """
    folded = [name.strip().casefold() for name in names]
    for src, tgt in ((src_lang.casefold(), tgt_lang.casefold()), *_SIDES):
        if src in folded and tgt in folded:
            return folded.index(src), folded.index(tgt)
    found = language_columns(names)
    codes = {code.partition("-")[0]: position for position, code in reversed(found.items())}
    wanted = [language_named(language) or "" for language in (src_lang, tgt_lang)]
    if all(code in codes for code in wanted) and wanted[0] != wanted[1]:
        return codes[wanted[0]], codes[wanted[1]]
    first_two = list(found)[:2]
    return (first_two[0], first_two[1]) if len(first_two) == 2 else None


def language_columns(names: Sequence[str]) -> dict[int, str]:
    """The columns that are named after languages, with their codes; none where this is not a header.

    `id` is Indonesian in a row of languages, but the number of a row beside other fields and beside two
    other languages.
    """
    if not all(map(_FIELD_NAME.fullmatch, (name.strip() for name in names))):
        return {}
    codes = {position: code for position, name in enumerate(names) if (code := _language_of(name))}
    without_id = {position: code for position, code in codes.items() if code != "id"}
    if len(codes) < len(names) or len(without_id) >= 2:
        codes = without_id
    return codes if len(set(codes.values())) == len(codes) >= 2 else {}


def language_cells(header: Sequence[str]) -> tuple[int, int] | None:
    """The columns that name the languages of each row: `src_lang` and `tgt_lang`, `source language` and
    `target language`, and the like."""
    places = [
        [
            place
            for place, name in enumerate(header)
            if (found := _OF_ROW.fullmatch(name.strip())) and found[side]
        ]
        for side in ("source", "target")
    ]
    return (places[0][0], places[1][0]) if all(len(own) == 1 for own in places) else None


def _language_of(name: str) -> str | None:
    """The language in `de`, `German`, `text_de` and `de_sentence`."""
    return language_named(name) or language_named(_BESIDE_A_LANGUAGE.sub("", name.replace("_", " ")))


def text_columns(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """The two sides of a table without a header: its first two columns of text. Columns of nothing but
    numbers, dates, addresses or one and the same value are metadata."""
    columns = list(zip(*rows, strict=True))
    texts = [position for position, cells in enumerate(columns) if not _is_metadata(cells)]
    return (texts[0], texts[1]) if len(texts) >= 2 else (0, 1)


def _is_metadata(cells: Sequence[str]) -> bool:
    constant = len(cells) >= _ROWS_FOR_A_CONSTANT and len(set(cells)) == 1
    return constant or all(_METADATA.fullmatch(cell.strip()) for cell in cells)


def parse_columns(columns: str) -> tuple[str, str]:
    """The source and the target in `en,de`, as `--columns` takes them."""
    names = [name.strip() for name in columns.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise UserError(
            f"--columns: expected the source and the target column, by name or number, such as en,de; "
            f"found {columns!r}"
        )
    return names[0], names[1]


def document_column(names: Sequence[str], wanted: str | None, where: str) -> int | None:
    """The column that names the document of each row: the one that is `wanted`, or one with a usual name."""
    if wanted is not None:
        return _position(names, wanted, where)
    folded = [name.strip().casefold() for name in names]
    return next((folded.index(name) for name in DOCUMENT_NAMES if name in folded), None)


def find_named(names: Sequence[str], src: str | None, tgt: str | None, where: str) -> tuple[int, int]:
    """The positions of the columns that the configuration names."""
    if src is None or tgt is None:
        raise UserError(f"{where}: name both columns, src and tgt, or neither")
    return _position(names, src, where), _position(names, tgt, where)


def _position(names: Sequence[str], wanted: str, where: str) -> int:
    stripped = [name.strip() for name in names]
    if wanted in stripped:
        return stripped.index(wanted)
    if is_number(wanted) and 1 <= int(wanted) <= len(names):
        return int(wanted) - 1
    raise UserError(f"{where}: there is no column '{wanted}'; there are {', '.join(map(repr, stripped))}")


def is_number(name: str | None) -> bool:
    """Whether a column is given by its number; such a table need not have a header."""
    return name is not None and name.isascii() and name.isdigit()
