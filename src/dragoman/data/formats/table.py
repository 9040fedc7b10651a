"""Rows of cells into pairs: what TSV and CSV have in common."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from dragoman.data.config import SourceConfig
from dragoman.data.formats.bitext import UNKNOWN, as_pair_of_languages, normal
from dragoman.data.formats.columns import (
    document_column,
    find_named,
    find_sides,
    is_header,
    is_number,
    language_cells,
    language_columns,
    text_columns,
)
from dragoman.data.formats.headers import language_in
from dragoman.data.formats.language_codes import is_language
from dragoman.data.formats.pair import Pair
from dragoman.errors import UserError

TableRow = tuple[int, list[str]]
"""The line at which the row begins, and its cells; no cells for a blank line."""
_LOOKED_AT = 100
"""Number of rows that tell which columns are text."""


@dataclass(frozen=True)
class Columns:
    """The two columns that are read, and the names of all where the first row is a header."""

    src: int
    tgt: int
    header: tuple[str, ...] | None
    width: int

    def __str__(self) -> str:
        if self.header is None:
            return f"{self.src + 1} → {self.tgt + 1} of {self.width} columns without names"
        return f"{self.header[self.src]} → {self.header[self.tgt]} of {', '.join(self.header)}"


def read_rows(
    rows: Iterable[TableRow],
    source: SourceConfig,
    src_lang: str,
    tgt_lang: str,
    skipped: list[str] | None = None,
) -> Iterator[Pair]:
    """Pairs of a table. A blank line is an empty pair, so that it is counted and not lost. A row with more or
    fewer cells than the first one is an error; with a list for `skipped`, it is left out and told there."""
    path = source.files[0]
    columns, first_line, rows = choose_columns(rows, source, src_lang, tgt_lang)
    told = None if source.src_lang is None else language_cells(columns.header or ())
    wanted = normal(src_lang), normal(tgt_lang)
    found = told is None
    document = None
    if columns.header is not None or source.document is not None:
        document = document_column(columns.header or [""] * columns.width, source.document, path)
    if document in (columns.src, columns.tgt):
        document = None
    for line, cells in rows:
        if not cells:
            yield Pair("", "", line)
            continue
        if len(cells) != columns.width:
            fault = f"expected {columns.width} columns as in line {first_line}, found {len(cells)}"
            if skipped is None:
                raise UserError(f"{path}:{line}: {fault}")
            skipped.append(f"{path}:{line}: {fault}")
            continue
        if columns.header is not None and line == first_line:
            continue
        src, tgt = cells[columns.src], cells[columns.tgt]
        if told is not None:
            own = row_languages(cells, told, columns.header or (), f"{path}:{line}")
            if own == wanted[::-1]:
                src, tgt = tgt, src
            elif own != wanted:
                continue
        found = True
        yield Pair(src, tgt, line, document="" if document is None else cells[document])
    if not found:
        raise UserError(f"{path}: no row has the languages '{src_lang}' and '{tgt_lang}'")


def row_languages(
    cells: Sequence[str], told: tuple[int, int], header: Sequence[str], where: str
) -> tuple[str, str]:
    """The languages named in the language columns of a row."""
    for place in told:
        if not is_language(cells[place].strip()):
            raise UserError(
                f"{where}: expected the code of a language in the column '{header[place]}', found "
                f"{cells[place]!r:.40}"
            )
    src, tgt = (normal(cells[place]) for place in told)
    return src, tgt


def row_pairs(rows: Iterable[TableRow], path: str) -> list[tuple[str, str]] | None:
    """The pairs of languages in a table that names them in every row; None where it has no such columns."""
    rows = iter(rows)
    header = next((cells for _, cells in rows if cells), [])
    told = language_cells(header)
    if told is None:
        return None
    full = ((line, cells) for line, cells in rows if len(cells) == len(header))
    return list(dict.fromkeys(row_languages(cells, told, header, f"{path}:{line}") for line, cells in full))


def named_languages(rows: Iterable[TableRow]) -> dict[str, str]:
    """The languages that columns of a table are named after, each with the name of its column."""
    header, below = _begin(rows)
    return {code: header[place].strip() for place, code in language_columns(header, below).items()}


def header_languages(rows: Iterable[TableRow]) -> tuple[str, str] | None:
    """The languages of the two sides, where the first row names them."""
    header, below = _begin(rows)
    sides = find_sides(header, *UNKNOWN, below)
    return None if sides is None else as_pair_of_languages(*(language_in(header[side]) for side in sides))


def _begin(rows: Iterable[TableRow]) -> tuple[list[str], list[list[str]]]:
    """The first row that is not blank, and some of those below with as many cells."""
    begun = [cells for _, cells in islice(rows, 1 + _LOOKED_AT) if cells]
    return (begun[0], [cells for cells in begun[1:] if len(cells) == len(begun[0])]) if begun else ([], [])


def choose_columns(
    rows: Iterable[TableRow], source: SourceConfig, src_lang: str, tgt_lang: str
) -> tuple[Columns, int, Iterable[TableRow]]:
    """The columns of the two sides, the first line that is not blank, and all rows again."""
    rows = iter(rows)
    begun: list[TableRow] = []
    for row in rows:
        begun.append(row)
        if row[1]:
            break
    else:
        return Columns(0, 1, None, 2), 0, begun
    line, cells = begun[-1]
    begun += islice(rows, _LOOKED_AT)
    rows = chain(begun, rows)
    where, width, header = f"{source.files[0]}:{line}", len(cells), tuple(cell.strip() for cell in cells)
    below = [row for place, row in begun if place > line and len(row) == width]
    sides = find_sides(cells, src_lang, tgt_lang, below)
    names = header if sides or is_header(cells, below) else None
    if source.src is not None or source.tgt is not None:
        src, tgt = find_named(cells, source.src, source.tgt, where)
        if not (is_number(source.src) and is_number(source.tgt)):
            names = header
        return Columns(src, tgt, names, width), line, rows
    if width < 2:
        raise UserError(f"{where}: expected at least 2 columns, found 1{_separator(source.files[0])}")
    sides = sides or text_columns(below if names else [cells, *below], names)
    if sides is None:
        said = f"the columns {', '.join(map(repr, names))}" if names else f"{width} columns without names"
        raise UserError(
            f"{where}: {said} do not tell which two are the source and the target; say it with --columns, "
            "by name or number, such as  --columns 2,3"
        )
    return Columns(*sides, names, width), line, rows


def _separator(path: str) -> str:
    return "" if path.casefold().removesuffix(".gz").endswith(".csv") else " (TSV separates them by a tab)"
