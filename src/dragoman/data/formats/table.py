"""Rows of cells into pairs: what TSV and CSV have in common."""

from collections.abc import Iterable, Iterator

from dragoman.data.config import SourceConfig
from dragoman.data.formats.columns import find_named, find_sides, is_number
from dragoman.data.formats.pair import Pair
from dragoman.errors import UserError

Row = tuple[int, list[str]]
"""The line at which the row begins, and its cells; no cells for a blank line."""


def read_rows(rows: Iterable[Row], source: SourceConfig, src_lang: str, tgt_lang: str) -> Iterator[Pair]:
    """Pairs of a table. A blank line is an empty pair, so that it is counted and not lost."""
    path = source.files[0]
    width = first_line = src = tgt = 0
    for line, cells in rows:
        if not cells:
            yield Pair("", "", line)
            continue
        if not width:
            width, first_line = len(cells), line
            src, tgt, is_header = _choose(cells, source, src_lang, tgt_lang, f"{path}:{line}")
            if is_header:
                continue
        if len(cells) != width:
            raise UserError(
                f"{path}:{line}: expected {width} columns as in line {first_line}, found {len(cells)}"
            )
        yield Pair(cells[src], cells[tgt], line)


def _choose(
    cells: list[str], source: SourceConfig, src_lang: str, tgt_lang: str, where: str
) -> tuple[int, int, bool]:
    """The columns of the two sides, and whether the first row is a header."""
    if source.src is not None or source.tgt is not None:
        src, tgt = find_named(cells, source.src, source.tgt, where)
        by_number = is_number(source.src) and is_number(source.tgt)
        return src, tgt, not by_number or find_sides(cells, src_lang, tgt_lang) is not None
    if len(cells) < 2:
        raise UserError(f"{where}: expected at least 2 columns, found 1")
    found = find_sides(cells, src_lang, tgt_lang)
    return (*found, True) if found else (0, 1, False)
