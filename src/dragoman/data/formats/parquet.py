"""Parquet tables with two text columns, or a `translation` column of structs as dataset hubs publish them."""

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dragoman.data.config import SourceConfig
from dragoman.data.formats.bitext import UNKNOWN, as_pair_of_languages
from dragoman.data.formats.columns import find_named, find_sides, text_columns
from dragoman.data.formats.headers import language_in
from dragoman.data.formats.lines import GZIP_MAGIC, ExpansionGuard, open_binary, read_chunks
from dragoman.data.formats.pair import Pair, check_text
from dragoman.data.formats.parquet_pages import unpacked_sizes
from dragoman.errors import UserError, missing_extra

_ROWS = 4096
_LOOKED_AT = 100
"""Number of rows that tell which columns are text."""
_DECODED = 64 << 20
"""Bytes that the cells of a column which are decoded at once can have."""
_LARGEST_PAGE = 128 << 20


def read(source: SourceConfig, src_lang: str, tgt_lang: str) -> Iterator[Pair]:
    with open_table(source.files[0]) as (table, file):
        yield from _rows(table, file, source, (src_lang, tgt_lang))


def languages_of(path: str) -> tuple[str, str] | None:
    """The languages that the two columns are named after."""
    with open_table(path) as (table, file):
        sides = _choose(table, file, SourceConfig((path,)), *UNKNOWN)
    return as_pair_of_languages(*(language_in(side[-1]) for side in sides))


def describe(source: SourceConfig, src_lang: str, tgt_lang: str) -> str:
    """The columns that are read, and all there are."""
    with open_table(source.files[0]) as (table, file):
        sides = _choose(table, file, source, src_lang, tgt_lang)
        names = [".".join(way) for way in _ways(table.schema_arrow)]
    return f"{' → '.join('.'.join(side) for side in sides)} of {', '.join(names)}"


@contextmanager
def open_table(path: str) -> Iterator[tuple[Any, IO[bytes]]]:
    """A Parquet file and its bytes. Whatever pyarrow cannot read inside is told in one sentence."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise missing_extra("pyarrow", "parquet", f"reading {path}") from None
    with _seekable(path) as file:
        try:
            with pyarrow.parquet.ParquetFile(file, pre_buffer=False) as table:
                yield table, file
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise UserError(f"{path}: not a Parquet file that can be read ({reason})") from None


def _rows(table: Any, file: IO[bytes], source: SourceConfig, languages: tuple[str, str]) -> Iterator[Pair]:
    path, row = source.files[0], 0
    src, tgt = _choose(table, file, source, *languages)
    src_name, tgt_name = ".".join(src), ".".join(tgt)
    _refuse_lists(table.schema_arrow, (src, tgt), path)
    guard, size = ExpansionGuard(path), Path(path).stat().st_size
    for batch in batches(table, file, [src_name, tgt_name], path):
        for src_text, tgt_text in zip(_cells(batch, src), _cells(batch, tgt), strict=True):
            row += 1
            where = f"{path}:{row}"
            pair = Pair(check_text(src_text, where, src_name), check_text(tgt_text, where, tgt_name), row)
            guard.check(len(pair.src) + len(pair.tgt), size)
            yield pair
    if row == 0:
        raise UserError(f"{path}: the file has no rows")


def batches(table: Any, file: IO[bytes], names: Sequence[str], path: str) -> Iterator[Any]:
    """A few rows at a time, so that the unpacked cells have a bounded size: in a file of 100 kB, a thousand
    rows can point to one cell of 1 MB."""
    for number in range(table.num_row_groups):
        group = table.metadata.row_group(number)
        if not group.num_rows:
            continue
        largest = max(_page_sizes(group, file, names, path), default=0)
        if largest > _LARGEST_PAGE:
            raise UserError(
                f"{path}: a page of the file unpacks to {largest:,} bytes, and {_LARGEST_PAGE:,} are allowed:"
                " write it with smaller pages"
            )
        rows = max(1, min(_ROWS, _DECODED // max(1, largest)))
        yield from table.iter_batches(batch_size=rows, row_groups=[number], columns=names, use_threads=False)


def _page_sizes(group: Any, file: IO[bytes], names: Sequence[str], path: str) -> Iterator[int]:
    """Unpacked sizes of the pages of these columns in a row group."""
    for number in range(group.num_columns):
        column = group.column(number)
        if column.path_in_schema in names:
            begin = column.data_page_offset
            if column.has_dictionary_page and 0 < column.dictionary_page_offset < begin:
                begin = column.dictionary_page_offset
            yield from unpacked_sizes(file, begin, begin + column.total_compressed_size, path)


@contextmanager
def _seekable(path: str) -> Iterator[IO[bytes]]:
    """The file itself; where it is gzip, an unpacked copy, since Parquet is read from its end."""
    with open_binary(path) as file:
        if not file.peek(2).startswith(GZIP_MAGIC):
            yield file
            return
    with tempfile.TemporaryFile() as copy:
        for chunk in read_chunks(path):
            copy.write(chunk)
        copy.seek(0)
        yield copy


def _choose(
    table: Any, file: IO[bytes], source: SourceConfig, src_lang: str, tgt_lang: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The ways to the two columns: ("src",) or ("translation", "en")."""
    path, schema = source.files[0], table.schema_arrow
    ways = _ways(schema)
    refuse_same_names([".".join(way) for way in ways], path)
    if source.src is not None or source.tgt is not None:
        src, tgt = find_named([".".join(way) for way in ways], source.src, source.tgt, path)
        return ways[src], ways[tgt]
    texts = [position for position, way in enumerate(ways) if _is_text(schema, way)]
    sample = _sample(table, file, ways, texts, path) if texts else []
    found = find_sides([way[-1] for way in ways], src_lang, tgt_lang, sample)
    if found is None and len(texts) > 1:
        among = text_columns(
            [[row[position] for position in texts] for row in sample],
            [ways[position][-1] for position in texts],
        )
        found = None if among is None else (texts[among[0]], texts[among[1]])
    if found is None:
        named = ", ".join(".".join(way) for way in ways) or "no column"
        raise UserError(f"{path}: expected two text columns, found {named}; say which with --columns")
    return ways[found[0]], ways[found[1]]


def _ways(schema: Any) -> list[tuple[str, ...]]:
    import pyarrow.types

    ways: list[tuple[str, ...]] = []
    for field in schema:
        if pyarrow.types.is_struct(field.type):
            ways += [(field.name, field.type.field(i).name) for i in range(field.type.num_fields)]
        else:
            ways.append((field.name,))
    return ways


def _sample(
    table: Any, file: IO[bytes], ways: Sequence[tuple[str, ...]], texts: Sequence[int], path: str
) -> list[list[str]]:
    """The first rows; a column that holds no text is empty in them."""
    names = [".".join(ways[position]) for position in texts]
    batch = next(batches(table, file, names, path), None)
    if batch is None:
        return []
    first = batch.slice(0, _LOOKED_AT)
    columns = [[""] * first.num_rows for _ in ways]
    for position in texts:
        columns[position] = [str(cell or "") for cell in _cells(first, ways[position])]
    return [list(row) for row in zip(*columns, strict=True)]


def refuse_same_names(names: Sequence[str], path: str) -> None:
    """A name that two columns have would lead to one of them, or to none."""
    for name, count in Counter(names).items():
        if count > 1:
            raise UserError(f"{path}: {count} columns are called '{name}'; give them different names")


def _refuse_lists(schema: Any, ways: Iterable[tuple[str, ...]], path: str) -> None:
    """Refuse list columns: a page of a few bytes can expand to any number of entries."""
    import pyarrow.types

    for way in ways:
        kind = _kind(schema, way)
        if pyarrow.types.is_nested(kind):
            raise UserError(f"{path}: expected text in '{'.'.join(way)}', found {kind}")


def _is_text(schema: Any, way: tuple[str, ...]) -> bool:
    import pyarrow.types

    kind = _kind(schema, way)
    return pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)


def _kind(schema: Any, way: tuple[str, ...]) -> Any:
    kind = schema.field(way[0]).type
    for name in way[1:]:
        kind = kind.field(name).type
    return kind


def _cells(batch: Any, way: tuple[str, ...]) -> list[object]:
    column = batch.column(batch.schema.get_field_index(way[0]))
    for name in way[1:]:
        column = column.field(name)
    return column.to_pylist()
