import csv
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.data.config import SourceConfig
from dragoman.data.formats import Pair, read_pairs
from dragoman.errors import UserError

EVIL = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\r \u00a0\u200d\u0301\U0001f600aé,;\"'{}[]:\\<>#"
TEXT = st.text(alphabet=EVIL, max_size=10)
PAIRS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=8)


def texts(pairs: Sequence[Pair]) -> list[tuple[str, str]]:
    return [(pair.src, pair.tgt) for pair in pairs]


def read(path: Path | Sequence[Path], langs: tuple[str, str] = ("src", "tgt"), **options: str) -> list[Pair]:
    files = [path] if isinstance(path, Path) else path
    return list(read_pairs(SourceConfig(tuple(map(str, files)), **options), *langs))  # type: ignore[arg-type]


def write(path: Path, data: str | bytes, zipped: bool = False) -> Path:
    raw = data.encode("utf-8") if isinstance(data, str) else data
    path.write_bytes(gzip.compress(raw) if zipped else raw)
    return path


@settings(max_examples=80, deadline=None)
@given(pairs=PAIRS, zipped=st.booleans())
def test_no_format_misaligns_or_splits(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], zipped: bool
) -> None:
    """What is written by independent means comes back pair for pair, with its line."""
    folder = tmp_path_factory.mktemp("f")
    numbers = list(range(1, len(pairs) + 1))
    # Where a line ends with the text, one trailing \r belongs to the line end.
    stripped = [(src.removesuffix("\r"), tgt.removesuffix("\r")) for src, tgt in pairs]
    files = [write(folder / f"a.{side}", "".join(p[side] + "\n" for p in pairs), zipped) for side in (0, 1)]
    found = read(files)
    assert texts(found) == stripped
    assert [pair.line for pair in found] == numbers

    found = read(write(folder / "a.tsv", "".join(f"{s}\t{t}\n" for s, t in pairs), zipped))
    assert texts(found) == [(src, tgt.removesuffix("\r")) for src, tgt in pairs]
    assert [pair.line for pair in found] == numbers

    for ensure_ascii in (True, False):
        rows = [json.dumps({"src": s, "tgt": t}, ensure_ascii=ensure_ascii) for s, t in pairs]
        found = read(write(folder / "a.jsonl", "".join(row + "\n" for row in rows), zipped))
        assert texts(found) == pairs
        assert [pair.line for pair in found] == numbers

    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([("src", "tgt"), *pairs])
    found = read(write(folder / "a.csv", out.getvalue(), zipped))
    assert texts(found) == pairs
    assert [pair.line for pair in found] == [n + 1 for n in numbers]


PIECES = [
    b'"',
    b",",
    b"\t",
    b"\n",
    b"\r",
    b"{",
    b"}",
    b'{"src": "a", "tgt": "b"}\n',
    b'"\\ud800"',
    b"\xff",
    b"\0",
]
BYTES = st.lists(
    st.sampled_from([*PIECES, b"src", b"tgt", b"a", b"PAR1", b"\x1f\x8b", b":", b"1e999", b"["])
).map(b"".join)


@settings(max_examples=250, deadline=None)
@given(
    data=BYTES,
    other=BYTES,
    name=st.sampled_from(["a.tsv", "a.csv", "a.jsonl", "a.parquet", "a.txt", "plain"]),
)
def test_any_bytes_give_pairs_or_a_user_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, other: bytes, name: str
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    files = [write(folder / name, data)]
    if name == "plain":
        files.append(write(folder / "other", other))
    try:
        pairs = read(files)
    except UserError as error:
        assert str(folder) in str(error)
        assert "\n" not in str(error)
        return
    assert all(isinstance(pair.src, str) and isinstance(pair.tgt, str) for pair in pairs)
    if name == "plain":
        assert len(pairs) == data.count(b"\n") + (not data.endswith(b"\n"))


@pytest.mark.parametrize(("src", "tgt"), [(3, 2), (2, 3), (3, 30_000)])
def test_unequal_line_counts_are_both_given(tmp_path: Path, src: int, tgt: int) -> None:
    files = [write(tmp_path / "a.en", "x\n" * src), write(tmp_path / "a.de", "y\n" * tgt)]
    with pytest.raises(UserError, match=rf"a\.en has {src} lines but .*a\.de has {tgt}: line n of one"):
        read(files)


def test_an_error_in_the_longer_rest_is_still_an_error(tmp_path: Path) -> None:
    files = [write(tmp_path / "a.en", b"x\n"), write(tmp_path / "a.de", b"y\n" + b"\xff\n")]
    with pytest.raises(UserError, match=r"a\.de:2: not valid UTF-8"):
        read(files)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_tsv(tmp_path: Path, end: str) -> None:
    path = write(
        tmp_path / "a.tsv", end.join(['"a', 'b "c"', "", "\tx"]).replace("a", "a\ty").replace("b", "b\t")
    )
    assert read(path) == [Pair('"a', "y", 1), Pair("b", ' "c"', 2), Pair("", "", 3), Pair("", "x", 4)]


@pytest.mark.parametrize(
    ("header", "langs", "expected"),
    [
        ("src\ttgt\tid", ("src", "tgt"), ("1", "2")),
        ("id\tTarget\tSource", ("en", "de"), ("3", "2")),
        ("de\ten\tfr", ("en", "fr"), ("2", "3")),
        ("de\ten\tfr", ("src", "tgt"), ("1", "2")),
        ("pt-BR\tzh_Hans\ten", ("src", "tgt"), ("1", "2")),
    ],
)
def test_header_by_name(
    tmp_path: Path, header: str, langs: tuple[str, str], expected: tuple[str, str]
) -> None:
    path = write(tmp_path / "a.tsv", f"{header}\n1\t2\t3\n")
    assert read(path, langs) == [Pair(*expected, 2)]


@pytest.mark.parametrize("first", ["no\tyes\tid", "the source\tthe target\tx", "de\tde\ten", "src\tx\ty"])
def test_a_first_row_that_names_nothing_is_a_pair(tmp_path: Path, first: str) -> None:
    assert len(read(write(tmp_path / "a.tsv", f"{first}\n1\t2\t3\n"))) == 2


def test_columns_by_name_and_number(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "id\tenglish\tgerman\n7\thello\thallo\n")
    assert read(path, src="english", tgt="german") == [Pair("hello", "hallo", 2)]
    assert read(path, src="3", tgt="2") == [Pair("hallo", "hello", 2)]
    with pytest.raises(
        UserError, match=r"a\.tsv:1: there is no column 'french'; there are 'id', 'english', 'german'"
    ):
        read(path, src="english", tgt="french")
    with pytest.raises(UserError, match="name both columns"):
        read(path, src="english")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.tsv", "a\tb\nc\td\te\n", r"a\.tsv:2: expected 2 columns as in line 1, found 3"),
        ("a.tsv", "a\tb\nc\n", r"a\.tsv:2: expected 2 columns as in line 1, found 1"),
        ("a.tsv", "a\nb\n", r"a\.tsv:1: expected at least 2 columns, found 1"),
        ("a.csv", 'a,b\n"c,d\ne,f\n', r"a\.csv:2: not valid CSV \(a quote is opened and never closed\)"),
        ("a.csv", 'a,b\n"c"d,e\n', r"a\.csv:2: not valid CSV"),
        ("a.csv", "a,b\nc\rd,e\n", r"a\.csv:2: not valid CSV \(a carriage return outside quotes"),
        ("a.csv", "a,b\nc,d,e\n", r"a\.csv:2: expected 2 columns as in line 1, found 3"),
        ("a.csv", 'a,b\n"' + "x" * 200_000 + '",y\n', r"a\.csv:2: not valid CSV \(a cell longer than 131072"),
        (
            "a.jsonl",
            '{"src": "a", "tgt": "b"}\n{"src": "a"\n',
            r"a\.jsonl:2: not valid JSON \(.* at character 12\)",
        ),
        ("a.jsonl", '["a", "b"]\n', r"a\.jsonl:1: expected a JSON object, found list"),
        ("a.jsonl", '{"src": "a", "tgt": "b"}\n{"src": "a"}\n', r"a\.jsonl:2: there is no field 'tgt'"),
        ("a.jsonl", '{"src": "a", "tgt": null}\n', r"a\.jsonl:1: expected text in 'tgt', found null"),
        ("a.jsonl", '{"src": 3, "tgt": ""}\n', r"a\.jsonl:1: expected text in 'src', found int"),
        (
            "a.jsonl",
            '{"src": "\\ud800", "tgt": ""}\n',
            r"a\.jsonl:1: half a surrogate pair \(U\+D800\) in 'src'",
        ),
        ("a.jsonl", '{"src": "\\u0000", "tgt": ""}\n', r"a\.jsonl:1: NUL in 'src'"),
        ("a.jsonl", '{"a": "x", "b": "y"}\n', r"a\.jsonl:1: expected the fields .*; found 'a', 'b'"),
        ("a.jsonl", "[" * 200_000 + "\n", r"a\.jsonl:1: (not valid JSON|JSON that cannot be read)"),
        ("a.jsonl", '{"src": 1' + "0" * 5000 + "}\n", r"a\.jsonl:1: JSON that cannot be read"),
        (
            "a.txt",
            "just a line\n",
            r"a\.txt: one file without pairs; give two files, source and target, or one of tsv, csv",
        ),
        ("a.xlsx", "PK", r"a\.xlsx: spreadsheets are not read; save it as CSV"),
        ("a.docx", "PK", r"a\.docx: a document holds no pairs"),
        ("a.parquet", "PAR1 but not really", r"a\.parquet: not a Parquet file"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, name: str, data: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(write(tmp_path / name, data))


def test_csv_quoting(tmp_path: Path) -> None:
    data = '\ufeffid,src,tgt\r\n1,"a, ""b""","c\nd"\r\n2,e,f\r\n\r\n3,"g\u2028h",i\r\n'
    found = read(write(tmp_path / "a.csv", data))
    assert found == [Pair('a, "b"', "c\nd", 2), Pair("e", "f", 4), Pair("", "", 5), Pair("g\u2028h", "i", 6)]


def test_csv_with_semicolons(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.csv", "en;de\na;b, c\n")) == [Pair("a", "b, c", 2)]


def test_csv_delimiters_without_a_header(tmp_path: Path) -> None:
    expected = [Pair("a, x", "b, y", 1), Pair("c", "d", 2), Pair("e", "f", 3)]
    assert read(write(tmp_path / "a.csv", "a, x;b, y\nc;d\ne;f\n")) == expected
    assert read(write(tmp_path / "b.csv", "a, x\tb, y\nc\td\ne\tf\n")) == expected
    assert read(write(tmp_path / "c.csv", '"a, x","b, y"\nc,d\ne,f\n')) == expected


@pytest.mark.parametrize(
    ("record", "langs", "options"),
    [
        ({"src": "x", "tgt": "y"}, ("en", "de"), {}),
        ({"id": 1, "source": "x", "target": "y"}, ("en", "de"), {}),
        ({"de": "y", "en": "x"}, ("en", "de"), {}),
        ({"translation": {"de": "y", "en": "x"}}, ("en", "de"), {}),
        ({"translation": {"en": "x", "de": "y"}}, ("src", "tgt"), {}),
        ({"q": "x", "meta": {"a": "y"}}, ("en", "de"), {"src": "q", "tgt": "meta.a"}),
        ({"q.x": "x", "a": "y"}, ("en", "de"), {"src": "q.x", "tgt": "a"}),
    ],
)
def test_jsonl_fields(
    tmp_path: Path, record: dict[str, object], langs: tuple[str, str], options: dict[str, str]
) -> None:
    path = write(tmp_path / "a.jsonl", json.dumps(record) + "\n\n" + json.dumps(record))
    assert read(path, langs, **options) == [Pair("x", "y", 1), Pair("", "", 2), Pair("x", "y", 3)]


@pytest.mark.parametrize("zipped", [False, True])
def test_parquet(tmp_path: Path, zipped: bool) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    rows = [(f"source {n}\u2028", f"target\n{n}") for n in range(10_000)]
    tables = {
        "flat": pa.table(
            {"id": list(range(10_000)), "tgt": [t for _, t in rows], "src": [s for s, _ in rows]}
        ),
        "nested": pa.table({"id": list(range(10_000)), "translation": [{"de": t, "en": s} for s, t in rows]}),
        "unnamed": pa.table(
            {"one": [s for s, _ in rows], "n": list(range(10_000)), "two": [t for _, t in rows]}
        ),
    }
    for name, table in tables.items():
        sink = io.BytesIO()
        pq.write_table(table, sink, row_group_size=3000)
        path = write(tmp_path / f"{name}.parquet", sink.getvalue(), zipped)
        found = read(path, ("en", "de"))
        assert texts(found) == rows
        assert [pair.line for pair in found] == list(range(1, 10_001))
    named = read(tmp_path / "nested.parquet", src="translation.de", tgt="translation.en")
    assert texts(named[:1]) == [(rows[0][1], rows[0][0])]


def test_parquet_faults(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"src": ["a", None], "tgt": ["b", "c"]}), path)
    with pytest.raises(UserError, match=r"a\.parquet:2: expected text in 'src', found null"):
        read(path)
    pq.write_table(pa.table({"n": [1], "src": ["b"]}), path)
    with pytest.raises(UserError, match=r"a\.parquet: expected two text columns, found n, src"):
        read(path)
    pq.write_table(pa.table({"src": pa.array([], pa.string()), "tgt": pa.array([], pa.string())}), path)
    with pytest.raises(UserError, match=r"a\.parquet: the file has no rows"):
        read(path)
    pq.write_table(pa.table({"src": ["a" * 100] * 100, "tgt": ["b" * 100] * 100}), path)
    whole = path.read_bytes()
    for cut in range(0, len(whole), max(1, len(whole) // 25)):
        path.write_bytes(whole[:cut])
        with pytest.raises(UserError, match=r"a\.parquet"):
            read(path)


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        UserError, match=r"needs the package 'pyarrow': install it with  pip install .*\[parquet\]"
    ):
        read(write(tmp_path / "a.parquet", "PAR1"))


def test_number_of_files_must_fit_the_format(tmp_path: Path) -> None:
    one, two = write(tmp_path / "a.tsv", "a\tb\n"), write(tmp_path / "b.tsv", "a\tb\n")
    with pytest.raises(UserError, match="plain text needs two files"):
        read(one, format="plain")
    with pytest.raises(UserError, match="a corpus in the format tsv is one file"):
        read([one, two], format="tsv")
    with pytest.raises(UserError, match="a corpus is one file or two"):
        read([one, two, one])
