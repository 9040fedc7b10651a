"""One pair per line, with sides separated by a tab. There is no quoting, so quotes are text."""

from collections.abc import Iterator

from dragoman.data.config import SourceConfig
from dragoman.data.formats.lines import read_lines
from dragoman.data.formats.pair import Pair
from dragoman.data.formats.table import TableRow, header_languages, read_rows


def read(source: SourceConfig, src_lang: str, tgt_lang: str) -> Iterator[Pair]:
    return read_rows(rows(source.files[0]), source, src_lang, tgt_lang)


def languages_of(path: str) -> tuple[str, str] | None:
    return header_languages(rows(path))


def rows(path: str) -> Iterator[TableRow]:
    for number, line in enumerate(read_lines(path), start=1):
        yield number, line.split("\t") if line else []
