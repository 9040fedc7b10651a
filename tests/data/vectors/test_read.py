"""Images and series from files of every kind, and what is refused."""

import gzip
import json
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from dragoman.data.config import SourceConfig
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import VectorExample
from dragoman.data.labelled.read import read_examples
from dragoman.data.vectors.config import ImageInput, SeriesInput
from dragoman.data.vectors.series import read_series
from dragoman.data.vectors.stack import parts_of
from dragoman.errors import UserError

PIXELS = np.arange(2 * 4 * 6, dtype=np.uint8).reshape(2, 4, 6)


def read(path: Path, task: TaskConfig, labelled: bool = True) -> list[VectorExample]:
    found = list(read_examples(SourceConfig((str(path),)), task, labelled))
    assert all(isinstance(each, VectorExample) for each in found)
    return found  # type: ignore[return-value]


def test_an_array_of_images_has_its_labels_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.images.npy.gz"
    with gzip.open(path, "wb") as file:
        np.save(file, PIXELS)
    with pytest.raises(UserError, match=r"expected its labels in .*a\.labels\.npy; there is no such file"):
        read(path, TaskConfig("image"))
    np.save(tmp_path / "a.labels.npy", np.array([3, 5]))
    found = read(path, TaskConfig("image"))
    assert [each.target for each in found] == ["3", "5"]
    np.testing.assert_array_equal(found[1].values, PIXELS[1][:, :, None])
    assert [each.target for each in read(path, TaskConfig("image"), labelled=False)] == [None, None]
    np.save(tmp_path / "a.labels.npy", np.array([3]))
    with pytest.raises(UserError, match=r"a\.labels\.npy: expected 2 labels .*, found 1"):
        read(path, TaskConfig("image"))
    np.save(tmp_path / "b.images.npy", PIXELS / 7)
    with pytest.raises(UserError, match=r"b\.images\.npy: expected whole numbers from 0 to 255"):
        read(tmp_path / "b.images.npy", TaskConfig("image"), labelled=False)


def test_a_table_names_images_beside_it(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "pictures").mkdir()
    image.fromarray(PIXELS[0]).save(tmp_path / "pictures/a.png")
    colours = np.stack([PIXELS[1]] * 3, axis=2)
    image.fromarray(colours).save(tmp_path / "pictures/b.png")
    np.save(tmp_path / "pictures/c.npy", PIXELS[0])
    table = tmp_path / "table.csv"
    table.write_text("image,label\npictures/a.png,cat\npictures/c.npy,dog\n", "utf-8")
    found = read(table, TaskConfig("image"))
    assert [(each.target, each.texts, each.origin) for each in found] == [
        ("cat", ("pictures/a.png",), f"{table}:2"),
        ("dog", ("pictures/c.npy",), f"{table}:3"),
    ]
    for example in found:
        np.testing.assert_array_equal(example.values, PIXELS[0][:, :, None])
    # Of the size and the colours that a run has
    (one,) = read(tmp_path / "pictures/b.png", TaskConfig("image", image=ImageInput(2, 3, 1)), labelled=False)
    assert one.values.shape == (2, 3, 1)
    lines = [{"image": "pictures/b.png", "label": "red"}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    np.testing.assert_array_equal(read(tmp_path / "t.jsonl", TaskConfig("image"))[0].values, colours)
    table.write_text("image,label\npictures/none.png,cat\n", "utf-8")
    with pytest.raises(UserError, match=r"table\.csv:2: there is no image '.*none\.png'"):
        read(table, TaskConfig("image"))
    (tmp_path / "pictures/bad.png").write_bytes(b"no picture")
    table.write_text("image,label\npictures/bad.png,cat\n", "utf-8")
    with pytest.raises(UserError, match=r"table\.csv:2: .*bad\.png: not an image that can be read"):
        read(table, TaskConfig("image"))


def test_series_with_labels(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,x1,x2,x3\nup,1,2,3\ndown,3,,\n", "utf-8")
    found = read(tmp_path / "a.csv", TaskConfig("series"))
    assert [each.target for each in found] == ["up", "down"]
    assert [each.values.tolist() for each in found] == [[[1], [2], [3]], [[3]]]
    (tmp_path / "b.tsv").write_text("1\t2\t0\n3\tnan\t1\n", "utf-8")  # no header: the label is the last
    found = read(tmp_path / "b.tsv", TaskConfig("series"))
    assert [(each.target, each.values[0, 0]) for each in found] == [("0", 1), ("1", 3)]
    (tmp_path / "c.jsonl").write_text('{"series": [[1, 2], [3, null]], "label": "x"}\n', "utf-8")
    (one,) = read(tmp_path / "c.jsonl", TaskConfig("series"))
    np.testing.assert_array_equal(one.values, [[1, 2], [3, np.nan]])
    (tmp_path / "d.csv").write_text("label,x1,x2\nup,1,two\n", "utf-8")
    with pytest.raises(UserError, match=r"d\.csv:2: expected numbers, found 'two'"):
        read(tmp_path / "d.csv", TaskConfig("series"))
    (tmp_path / "e.jsonl").write_text('{"series": "no", "label": "x"}\n', "utf-8")
    with pytest.raises(UserError, match=r"e\.jsonl:1: 'series': expected numbers"):
        read(tmp_path / "e.jsonl", TaskConfig("series"))


def test_a_series_of_channels_from_every_format(tmp_path: Path) -> None:
    values = np.array([[1, 2.5], [np.nan, 3], [4, 5]])
    (tmp_path / "a.csv").write_text("date,x,y\nmon,1,2.5\ntue,,3\nwed,4,5\n", "utf-8")
    np.save(tmp_path / "a.npy", values)
    found = read_series(str(tmp_path / "a.csv"), ())
    assert (found.names, found.times) == (("x", "y"), ("mon", "tue", "wed"))
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_array_equal(read_series(str(tmp_path / "a.npy"), ()).values, values)
    assert read_series(str(tmp_path / "a.csv"), ("y",)).values.tolist() == [[2.5], [3], [5]]
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    columns = {"date": ["mon", "tue", "wed"], "x": [1.0, None, 4.0], "y": [2.5, 3.0, 5.0]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    again = read_series(str(tmp_path / "a.parquet"), ())
    assert (again.names, again.times) == (found.names, found.times)
    np.testing.assert_array_equal(again.values, values)
    with pytest.raises(UserError, match=r"a\.csv: there is no column 'z'; there are date, x, y"):
        read_series(str(tmp_path / "a.csv"), ("z",))
    (tmp_path / "b.csv").write_text("x,y\n1,2\n3,four\n", "utf-8")
    with pytest.raises(UserError, match=r"b\.csv:3: expected a number in column 'y', found 'four'"):
        read_series(str(tmp_path / "b.csv"), ())
    (tmp_path / "c.csv").write_text("x,y\n1,2\n3\n", "utf-8")
    with pytest.raises(UserError, match=r"c\.csv:3: expected 2 columns as in the first line, found 1"):
        read_series(str(tmp_path / "c.csv"), ())


@pytest.mark.parametrize("number", [np.inf, -np.inf, 1e31, -1e300])
def test_numbers_that_no_network_can_hold(number: float, tmp_path: Path) -> None:
    """An infinite one would be taken for the border between two series."""
    values = np.array([[1.0, 2.0], [np.nan, number], [3.0, 4.0]])
    for path, array in ((tmp_path / "a.npy", values), (tmp_path / "b.npy", values[:, :, None])):
        np.save(path, array)
    (tmp_path / "a.csv").write_text(f"x,y\n1,2\n3,{number}\n", "utf-8")
    (tmp_path / "b.jsonl").write_text(json.dumps({"series": [1.0, number]}) + "\n", "utf-8")
    for name in ("a.npy", "a.csv"):
        with pytest.raises(UserError, match=rf"{name}.*: expected (a number|numbers up to 1e\+30)"):
            read_series(str(tmp_path / name), ())
    for name in ("b.npy", "b.jsonl"):
        with pytest.raises(UserError, match=rf"{name}.*: expected numbers up to 1e\+30, found"):
            read(tmp_path / name, TaskConfig("series"), labelled=False)
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    parquet.write_table(pyarrow.table({"x": [1.0, number]}), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"a\.parquet: expected numbers up to"):
        read_series(str(tmp_path / "a.parquet"), ())


@pytest.mark.parametrize("values", [np.array([["1", "a"]]), np.ones((2, 2), np.complex128)])
def test_an_array_of_something_else_is_no_series(values: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(UserError, match=r"a\.npy: expected numbers, found (<U1|complex128)"):
        read_series(str(tmp_path / "a.npy"), ())
    with pytest.raises(UserError, match=r"a\.npy: expected numbers, found"):
        read(tmp_path / "a.npy", TaskConfig("series"), labelled=False)


def test_a_small_parquet_file_takes_little_memory(tmp_path: Path) -> None:
    """A column of one number is a few bytes, and so is one of a long text that all rows have."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    ones = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000_000, np.int8)), pa.array([1.0]))
    parquet.write_table(pa.table({"x": ones.dictionary_decode()}), tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 100_000
    with pytest.raises(UserError, match=r"a\.parquet: .*refused as a decompression bomb"):
        read_series(str(tmp_path / "a.parquet"), ())
    count = 2000
    when = pa.DictionaryArray.from_arrays(pa.array([0] * count), ["x" * 100_000])
    parquet.write_table(pa.table({"when": when, "x": [1.0] * count}), tmp_path / "b.parquet")
    tracemalloc.start()
    try:
        found = read_series(str(tmp_path / "b.parquet"), ())
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
    assert len(found.times) == count and set(map(len, found.times)) == {64}


def test_columns_of_one_name(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.Table.from_arrays([pa.array([1.0, 2.0])] * 2, names=["x", "x"])
    parquet.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("x,x\n1,2\n3,4\n", "utf-8")
    for name in ("a.parquet", "a.csv"):
        with pytest.raises(UserError, match=rf"{name}: 2 columns are called 'x'; give them different names"):
            read_series(str(tmp_path / name), ())


def test_a_column_of_nothing_but_gaps(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1.0, np.nan], [2.0, np.nan]]))
    (tmp_path / "a.csv").write_text("x,2\n1,\n2,nan\n", "utf-8")
    for name in ("a.npy", "a.csv"):
        with pytest.raises(UserError, match=rf"{name}: column '2' has no number; name the others in"):
            read_series(str(tmp_path / name), ())


def test_a_picture_that_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(UserError, match=r"a\.png: this is not a file; it may be a directory, a named pipe"):
        read(tmp_path / "a.png", TaskConfig("image"), labelled=False)


def test_parts_are_those_of_the_literature() -> None:
    """border1s and border2s of Zhou et al. (2021) and Zeng et al. (2023) for ETTh1 and exchange rates."""
    month = 30 * 24
    etth1 = SeriesInput(336, 16, 8, 96, split=(12 * month, 4 * month, 4 * month))
    assert parts_of(17_420, etth1, "a") == {
        "train": (0, 12 * month),
        "valid": (12 * month - 336, 16 * month),
        "test": (16 * month - 336, 20 * month),
    }
    train, test = int(7588 * 0.7), int(7588 * 0.2)
    assert parts_of(7588, SeriesInput(336, 16, 8, 96), "a") == {
        "train": (0, train),
        "valid": (train - 336, 7588 - test),
        "test": (7588 - test - 336, 7588),
    }
    with pytest.raises(UserError, match=r"task\.series\.split asks for 14,400 steps, and there are 9,000"):
        parts_of(9000, etth1, "a")
    with pytest.raises(UserError, match=r"needs 432; lower task\.series\.window"):
        parts_of(500, SeriesInput(336, 16, 8, 96), "a")


def test_numbers_that_tell_the_time_are_no_channel(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Date,load\n1,2.5\n2,3.5\n", encoding="utf-8")
    found = read_series(str(path), ())
    assert (found.names, found.times, found.values.tolist()) == (("load",), ("1", "2"), [[2.5], [3.5]])
    assert read_series(str(path), ("Date",)).names == ("Date",)
