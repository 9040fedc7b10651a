"""Parquet tables with two text columns, or a `translation` column of structs as dataset hubs publish them."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dragoman.data.config import SourceConfig
from dragoman.data.formats.columns import find_named, find_sides
from dragoman.data.formats.lines import GZIP_MAGIC, ExpansionGuard, open_binary, read_chunks
from dragoman.data.formats.pair import Pair, check_text
from dragoman.errors import UserError, missing_extra

_ROWS = 4096


def read(source: SourceConfig, src_lang: str, tgt_lang: str) -> Iterator[Pair]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise missing_extra("pyarrow", "parquet", f"reading {source.files[0]}") from None
    path = source.files[0]
    row = 0
    try:
        with _seekable(path) as file, pyarrow.parquet.ParquetFile(file, pre_buffer=False) as table:
            src, tgt = _choose(table.schema_arrow, source, src_lang, tgt_lang, path)
            src_name, tgt_name = ".".join(src), ".".join(tgt)
            guard, size = ExpansionGuard(path), Path(path).stat().st_size
            columns = list({src[0]: None, tgt[0]: None})
            for batch in table.iter_batches(batch_size=_ROWS, columns=columns, use_threads=False):
                guard.check(batch.nbytes, size)
                for src_text, tgt_text in zip(_cells(batch, src), _cells(batch, tgt), strict=True):
                    row += 1
                    where = f"{path}:{row}"
                    yield Pair(
                        check_text(src_text, where, src_name), check_text(tgt_text, where, tgt_name), row
                    )
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a Parquet file that can be read ({_one_line(error)})") from None
    if row == 0:
        raise UserError(f"{path}: the file has no rows")


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
    schema: Any, source: SourceConfig, src_lang: str, tgt_lang: str, path: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The ways to the two columns: ("src",) or ("translation", "en")."""
    import pyarrow.types

    ways: list[tuple[str, ...]] = []
    for field in schema:
        if pyarrow.types.is_struct(field.type):
            ways += [(field.name, field.type.field(i).name) for i in range(field.type.num_fields)]
        else:
            ways.append((field.name,))
    if source.src is not None or source.tgt is not None:
        src, tgt = find_named([".".join(way) for way in ways], source.src, source.tgt, path)
        return ways[src], ways[tgt]
    found = find_sides([way[-1] for way in ways], src_lang, tgt_lang)
    texts = [i for i, way in enumerate(ways) if _is_text(schema, way)]
    if found is None and len(texts) >= 2:
        found = texts[0], texts[1]
    if found is None:
        raise UserError(f"{path}: expected two text columns, found {', '.join('.'.join(w) for w in ways)}")
    return ways[found[0]], ways[found[1]]


def _is_text(schema: Any, way: tuple[str, ...]) -> bool:
    import pyarrow.types

    kind = schema.field(way[0]).type
    for name in way[1:]:
        kind = kind.field(name).type
    return pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)


def _cells(batch: Any, way: tuple[str, ...]) -> list[object]:
    column = batch.column(batch.schema.get_field_index(way[0]))
    for name in way[1:]:
        column = column.field(name)
    return column.to_pylist()


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
