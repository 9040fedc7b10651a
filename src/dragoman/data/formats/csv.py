"""Comma-separated values with the quoting of RFC 4180: a quoted cell may hold commas, quotes, line ends."""

import csv
import itertools
import re
from collections.abc import Iterator, Sequence

from dragoman.data.config import SourceConfig
from dragoman.data.formats.bitext import UNKNOWN
from dragoman.data.formats.columns import find_sides
from dragoman.data.formats.lines import read_lines
from dragoman.data.formats.pair import Pair
from dragoman.data.formats.table import TableRow, header_languages, read_rows
from dragoman.errors import UserError

_LOOKED_AT = 50
"""Number of lines that tell the delimiter."""
_DELIMITERS = ",;\t|"
_SAID = re.compile(r"sep=(.)", re.IGNORECASE)
"""The first line of some files from Excel."""


def read(source: SourceConfig, src_lang: str, tgt_lang: str) -> Iterator[Pair]:
    return read_rows(rows(source.files[0]), source, src_lang, tgt_lang)


def languages_of(path: str) -> tuple[str, str] | None:
    return header_languages(rows(path))


def rows(path: str, delimiter: str | None = None) -> Iterator[TableRow]:
    """The rows of a file, with the delimiter that its first lines tell."""
    lines = read_lines(path)
    begin = list(itertools.islice(lines, _LOOKED_AT))
    said = _SAID.fullmatch(begin[0]) if begin else None
    begin = begin[1:] if said else begin
    chosen = delimiter or (said[1] if said else "") or _delimiter(begin)
    # The csv module is given lines that already end at \n only, so it never looks for other line ends.
    fed = (line + "\n" for line in itertools.chain(begin, lines))
    found = csv.reader(fed, delimiter=chosen, strict=True)
    above = 1 if said is None else 2
    begins = above
    try:
        for cells in found:
            yield begins, cells
            begins = found.line_num + above
    except csv.Error as error:
        raise UserError(f"{path}:{begins}: not valid CSV ({_explain(str(error))})") from None


def _delimiter(lines: Sequence[str]) -> str:
    """The delimiter: of comma, semicolon, tab and bar those that cut the first rows into equally many cells,
    and of these the first with known names in the first row, or else without a space after it.

    Spreadsheets write semicolons where the comma is the decimal sign.
    """
    found: list[tuple[bool, bool, str]] = []
    for delimiter in _DELIMITERS:
        try:
            rows = list(csv.reader((line + "\n" for line in lines), delimiter=delimiter))
        except csv.Error:
            break
        widths = {len(cells) for cells in rows[:-1] or rows if cells}  # the last row may be incomplete
        if len(widths) == 1 and max(widths) > 1:
            header = next(cells for cells in rows if cells)
            inside = any(cell.startswith(" ") for cells in rows for cell in cells[1:])
            found.append((find_sides(header, *UNKNOWN) is None, inside, delimiter))
    if found:
        return min(found, key=lambda one: one[:2])[2]
    return ";" if lines and ";" in lines[0] and "," not in lines[0] else ","


def _explain(message: str) -> str:
    if "new-line character" in message:
        return "a carriage return outside quotes; quote the cell"
    if "unexpected end of data" in message:
        return "a quote is opened and never closed"
    if "field larger" in message:
        return f"a cell longer than {csv.field_size_limit()} characters; is a closing quote missing?"
    return message
