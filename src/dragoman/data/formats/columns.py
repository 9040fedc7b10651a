"""Which two columns (or fields) of a table are the source and the target."""

import re
from collections.abc import Sequence

from dragoman.data.formats.headers import DOCUMENT_NAMES, are_all_known, is_key, language_in, named_sides
from dragoman.data.formats.language_codes import language_named
from dragoman.errors import UserError

_FIELD_NAME = re.compile(r"(?!\d+$)[\w .:#()\[\]/-]{1,40}")
_METADATA = re.compile(
    r"[\d\s.,:;%+/-]*"  # numbers, dates, times
    r"|\d{4}-\d\d-\d\dT[\d:.]+Z?"
    r"|https?://\S+"
    r"|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # UUID
    r"|[0-9a-f]{32,64}",  # hash
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"(?=.*[\d_.:/])[A-Za-z][\w.:/-]*\w", re.ASCII)
"""`menu.file.open`, `KEY_17`, `A-0`."""
_OF_ROW = re.compile(
    r"((?P<source>src|source)|(?P<target>tgt|trg|target))[\s_.-]*(lang|language)", re.IGNORECASE
)
_ROWS_FOR_A_CONSTANT = 5
"""Number of rows after which a column with a constant value is taken to hold no text."""
_ROWS_FOR_A_CHOICE = 20
"""The same for one with few values, such as names of authors."""
_SHARE_OF_A_CHOICE = 0.1
CellRows = Sequence[Sequence[str]]


def find_sides(
    names: Sequence[str], src_lang: str, tgt_lang: str, rows: CellRows = ()
) -> tuple[int, int] | None:
    """The positions of the two sides among `names`, or None where the names do not tell.

    Looked for in turn: the languages of the run, names such as src/tgt and source/target, and last the first
    two columns that are named after a language. Other columns beside them are left alone. `rows` are some of
    the rows below.
    """
    names = [_bare(name) for name in names]
    folded = [name.casefold() for name in names]
    if src_lang.casefold() in folded and tgt_lang.casefold() in folded:
        return folded.index(src_lang.casefold()), folded.index(tgt_lang.casefold())
    if found := named_sides(names, [not _is_metadata(cells) for cells in _columns(rows, len(names))]):
        return found
    languages = language_columns(names, rows)
    codes = {code.partition("-")[0]: position for position, code in reversed(languages.items())}
    wanted = [language_named(language) or "" for language in (src_lang, tgt_lang)]
    if all(code in codes for code in wanted) and wanted[0] != wanted[1]:
        return codes[wanted[0]], codes[wanted[1]]
    first_two = list(languages)[:2]
    return (first_two[0], first_two[1]) if len(first_two) == 2 else None


def language_columns(names: Sequence[str], rows: CellRows = ()) -> dict[int, str]:
    """The columns that are named after languages, with their codes; none where this is not a header.

    `id` is Indonesian, `no` Norwegian and `nr` Ndebele in a row of languages, but the number of a row beside
    other fields, beside two other languages, and above numbers.
    """
    names = [_bare(name) for name in names]
    if not all(_FIELD_NAME.fullmatch(name) for name in names if name):
        return {}
    codes = {position: code for position, name in enumerate(names) if (code := language_in(name))}
    certain = {position: code for position, code in codes.items() if not is_key(names[position])}
    cells = _columns(rows, len(names))
    numbered = any(_is_metadata(cells[position]) for position in codes.keys() - certain.keys())
    if len(codes) < len(names) or len(certain) >= 2 or numbered:
        codes = certain
    texts = {position: code for position, code in codes.items() if not _is_metadata(cells[position])}
    codes = texts if len(texts) >= 2 else codes
    return codes if len(set(codes.values())) == len(codes) >= 2 else {}


def is_header(names: Sequence[str], rows: CellRows) -> bool:
    """Whether a first row that does not tell the two sides is a header all the same: three or more usual
    names of columns, or a name above numbers and dates."""
    names = [_bare(name) for name in names]
    if not any(names) or not all(_FIELD_NAME.fullmatch(name) for name in names if name):
        return False
    if len(names) > 2 and are_all_known(names):
        return True
    enough = len(rows) >= (3 if len(names) == 2 else 2)
    columns = list(zip(names, _columns(rows, len(names)), strict=True))
    numbered = any(
        all(cells) and _is_numbers(cells) and not _is_numbers([name or "id"]) for name, cells in columns
    )
    return enough and (numbered or any(is_key(name) and _is_constant(cells) for name, cells in columns))


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


def text_columns(rows: CellRows, names: Sequence[str] | None = None) -> tuple[int, int] | None:
    """The two sides of a table whose names do not tell: its first two columns of text, or None if it has not
    two. Columns of nothing but numbers, dates, addresses, identifiers or one and the same value are metadata,
    and so are those with a name such as `id`."""
    columns = _columns(rows, len(rows[0]) if rows else 0)
    texts = [
        position
        for position, cells in enumerate(columns)
        if not _is_metadata(cells) and not (names and is_key(names[position]))
    ]
    for is_other in (_is_identifiers, _is_choice):
        rest = [position for position in texts if not is_other(columns[position])]
        texts = rest if len(rest) >= 2 else texts
    if len(texts) >= 2:
        return texts[0], texts[1]
    if any(map(is_key, names or ())):
        return None
    return (0, 1) if len(columns) == 2 or not texts else None


def _columns(rows: CellRows, width: int) -> list[tuple[str, ...]]:
    return list(zip(*rows, strict=True)) if rows else [()] * width


def _is_metadata(cells: Sequence[str]) -> bool:
    return bool(cells) and (_is_constant(cells) or _is_numbers(cells))


def _is_constant(cells: Sequence[str]) -> bool:
    return len(cells) >= _ROWS_FOR_A_CONSTANT and len(set(cells)) == 1


def _is_numbers(cells: Sequence[str]) -> bool:
    """Also dates, addresses and hashes."""
    return all(_METADATA.fullmatch(cell.strip()) for cell in cells)


def _is_identifiers(cells: Sequence[str]) -> bool:
    return len(set(cells)) == len(cells) and all(_IDENTIFIER.fullmatch(cell.strip()) for cell in cells)


def _is_choice(cells: Sequence[str]) -> bool:
    return len(cells) >= _ROWS_FOR_A_CHOICE and len(set(cells)) <= _SHARE_OF_A_CHOICE * len(cells)


def _bare(name: str) -> str:
    """A name without spaces and quotation marks around it."""
    stripped = name.strip()
    quoted = len(stripped) > 2 and stripped[0] == stripped[-1] == '"'
    return stripped[1:-1].strip() if quoted else stripped


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
