"""Parquet files in which a few bytes stand for gigabytes: memory is bounded, however they are packed."""

import io
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.config import SourceConfig
from dragoman.data.formats import Pair, read_pairs
from dragoman.data.formats import parquet as reader
from dragoman.data.formats.lines import ExpansionGuard
from dragoman.data.formats.parquet_pages import unpacked_sizes
from dragoman.errors import UserError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS, DECODED = 2000, 1 << 20
LONG = "a word and another " * 5000  # 95 kB: 190 MB in all rows


def read(path: Path) -> list[Pair]:
    return list(read_pairs(SourceConfig((str(path),)), "en", "de"))


def dictionary_type(texts: list[str]) -> Any:
    return pa.array(texts).dictionary_encode()


def write(path: Path, src: Any, **options: Any) -> Path:
    pq.write_table(pa.table({"src": src, "tgt": [str(n) for n in range(len(src))]}), path, **options)
    return path


def shared_cell(path: Path) -> Path:
    return write(path, pa.DictionaryArray.from_arrays(pa.array([0] * ROWS), [LONG]))


def shared_cell_of_text(path: Path) -> Path:
    return write(path, [LONG] * ROWS, use_dictionary=True)


def shared_cell_in_struct(path: Path) -> Path:
    cells = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS), [LONG])
    both = pa.StructArray.from_arrays([cells, pa.array(["x"] * ROWS)], names=["en", "de"])
    pq.write_table(pa.table({"translation": both}), path)
    return path


def shared_beginning(path: Path) -> Path:
    """Each cell is the one before it and some letters more."""
    texts = [LONG + str(n) for n in range(ROWS)]
    return write(path, texts, use_dictionary=False, column_encoding={"src": "DELTA_BYTE_ARRAY"})


def packed(path: Path) -> Path:
    return write(path, [LONG[n:] for n in range(ROWS)], use_dictionary=False, compression="zstd")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (shared_cell, "unpacks to more than 200 times its size"),
        (shared_cell_of_text, "unpacks to more than 200 times its size"),
        (shared_cell_in_struct, "unpacks to more than 200 times its size"),
        (shared_beginning, "unpacks to more than 200 times its size"),
        (packed, r"a page of the file unpacks to [\d,]+ bytes, and [\d,]+ are allowed"),
    ],
)
def test_a_small_file_takes_little_memory(
    make: Callable[[Path], Path], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(tmp_path / "a.parquet")
    assert path.stat().st_size < 1 << 20
    monkeypatch.setattr(reader, "_DECODED", DECODED)
    monkeypatch.setattr(reader, "_LARGEST_PAGE", 8 << 20)
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=told):
            for _ in read_pairs(SourceConfig((str(path),)), "en", "de"):
                pass
        own = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)
    assert own < 16 * DECODED
    assert pool.max_memory() < 16 * DECODED


def test_large_cells_are_read_a_few_rows_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are not refused: what is in the file counts, and its size."""
    path = shared_cell_of_text(tmp_path / "a.parquet")
    monkeypatch.setattr(reader, "_DECODED", DECODED)
    monkeypatch.setattr(ExpansionGuard, "check", lambda *_: None)
    sizes: list[int] = []
    real = reader._cells

    def counted(batch: Any, way: tuple[str, ...]) -> list[object]:
        found = real(batch, way)
        sizes.append(sum(len(str(cell)) for cell in found))
        return found

    monkeypatch.setattr(reader, "_cells", counted)
    assert sum(1 for _ in read_pairs(SourceConfig((str(path),)), "en", "de")) == ROWS
    assert max(sizes) <= DECODED


def test_a_list_is_no_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [["a"], ["b"]])
    with pytest.raises(UserError, match=r"a\.parquet: expected text in 'src', found list<"):
        read(path)


@pytest.mark.parametrize("options", [{}, {"compression": "zstd"}, {"data_page_version": "2.0"}])
@pytest.mark.parametrize("statistics", [False, True])
def test_pages_are_as_large_as_they_say(tmp_path: Path, options: dict[str, Any], statistics: bool) -> None:
    """Headers with the smallest and largest cell in them too."""
    texts = [f"{n} {'x' * 700}" for n in range(4000)]
    path = write(
        tmp_path / "a.parquet",
        texts,
        use_dictionary=False,
        data_page_size=10_000,
        write_batch_size=10,
        write_statistics=statistics,
        **options,
    )
    assert [pair.src for pair in read(path)] == texts
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    begin = column.data_page_offset
    with path.open("rb") as file:
        sizes = list(unpacked_sizes(file, begin, begin + column.total_compressed_size, "a"))
    payload = sum(4 + len(text) for text in texts)
    assert len(sizes) > 100
    assert payload <= sum(sizes) <= payload + 100 * len(sizes)


def test_noise_in_place_of_a_header_is_refused() -> None:
    rng = random.Random(1)
    for _ in range(300):
        noise = io.BytesIO(rng.randbytes(rng.randrange(200)))
        try:
            assert all(size >= 0 for size in unpacked_sizes(noise, 0, len(noise.getvalue()), "a.parquet"))
        except UserError as error:
            assert "a.parquet: not a Parquet file that can be read (no page at byte" in str(error)
    deep = io.BytesIO(b"\x1c" * 5000)
    with pytest.raises(UserError, match="no page at byte 0"):
        list(unpacked_sizes(deep, 0, 5000, "a.parquet"))


def test_a_damaged_file_gives_one_sentence_or_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [f"sentence {n % 7}" for n in range(200)])
    whole, rng = path.read_bytes(), random.Random(2)
    for _ in range(200):
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            read(path)
        except UserError as error:
            assert str(path) in str(error)
            assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("names", "told"),
    [(["en", "en"], "2 columns are called 'en'"), (["en"], "expected two text columns, found en")],
)
def test_columns_that_are_no_pair(tmp_path: Path, names: list[str], told: str) -> None:
    pq.write_table(
        pa.Table.from_arrays([pa.array(["a", "b"])] * len(names), names=names), tmp_path / "a.parquet"
    )
    with pytest.raises(UserError, match=told):
        read(tmp_path / "a.parquet")
