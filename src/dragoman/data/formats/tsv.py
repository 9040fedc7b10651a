"""One pair per line, with sides separated by a tab. Quotes are text, unless the names in the first line have
them."""

from collections.abc import Iterator

from dragoman.data.config import SourceConfig
from dragoman.data.formats import csv
from dragoman.data.formats.bitext import UNKNOWN
from dragoman.data.formats.columns import find_sides
from dragoman.data.formats.lines import read_lines
from dragoman.data.formats.pair import Pair
from dragoman.data.formats.table import TableRow, header_languages, read_rows


def read(source: SourceConfig, src_lang: str, tgt_lang: str) -> Iterator[Pair]:
    return read_rows(rows(source.files[0]), source, src_lang, tgt_lang)


def languages_of(path: str) -> tuple[str, str] | None:
    return header_languages(rows(path))


def rows(path: str) -> Iterator[TableRow]:
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t") if line else []
        if number == 1 and _is_quoted_header(cells):
            yield from csv.rows(path, "\t")
            return
        yield number, cells


def _is_quoted_header(cells: list[str]) -> bool:
    quoted = all(len(cell) > 2 and cell[0] == cell[-1] == '"' for cell in cells)
    return quoted and find_sides(cells, *UNKNOWN) is not None
