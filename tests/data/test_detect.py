import gzip
from pathlib import Path

import pytest

from dragoman.data.config import CleanConfig, DataConfig, SourceConfig
from dragoman.data.formats import detect_format, group_files, guess_languages
from dragoman.errors import UserError


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.tsv", b"", "tsv"),
        ("a.CSV.gz", b"", "csv"),
        ("a.jsonl", b"", "jsonl"),
        ("a.parquet", b"", "parquet"),
        ("a.txt", b'\n{"src": 1}', "jsonl"),
        ("a", b"a\tb\n", "tsv"),
        ("a", gzip.compress(b"a\tb\n", mtime=0), "tsv"),
        ("a.bin", b"PAR1....", "parquet"),
    ],
)
def test_format_by_suffix_then_by_content(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert detect_format([str(tmp_path / name)]) == expected


def test_two_files_are_plain() -> None:
    assert detect_format(["a.en", "a.de"]) == "plain"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["a.en", "a.de"], [("a.en", "a.de")]),
        (["a.en", "a.de", "b.en", "b.de"], [("a.en", "a.de"), ("b.en", "b.de")]),
        (["a.en.gz", "b.en", "a.de", "b.de"], [("a.en.gz", "a.de"), ("b.en", "b.de")]),
        (["x/a.en", "y/a.en", "y/a.de", "x/a.de"], [("x/a.en", "x/a.de"), ("y/a.en", "y/a.de")]),
        (["one", "two", "three", "four"], [("one", "two"), ("three", "four")]),
        (["a.tsv", "b.jsonl.gz"], [("a.tsv",), ("b.jsonl.gz",)]),
        (["a.en", "t.csv", "a.de"], [("a.en", "a.de"), ("t.csv",)]),
        (["what.txt"], [("what.txt",)]),
    ],
)
def test_files_are_grouped_into_corpora(files: list[str], expected: list[tuple[str, ...]]) -> None:
    assert [source.files for source in group_files(files)] == expected


def test_files_that_cannot_be_grouped() -> None:
    with pytest.raises(UserError, match=r"two by two, source and target; found 3: a\.en, a\.de, b\.en"):
        group_files(["a.en", "a.de", "b.en"])
    with pytest.raises(UserError, match=r"^a\.en: the same file is given as source and as target$"):
        group_files(["a.en", "a.en"])
    with pytest.raises(UserError, match=r"^a\.docx: a document holds no pairs"):
        group_files(["a.docx", "a.de"])
    with pytest.raises(UserError, match="at least one file"):
        group_files([])


def test_a_format_given_by_name_holds_for_all_files() -> None:
    assert [s.files for s in group_files(["a.x", "b.x"], "tsv")] == [("a.x",), ("b.x",)]
    assert [s.files for s in group_files(["a.tsv", "b.tsv"], "plain")] == [("a.tsv", "b.tsv")]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (("a.en", "a.de.gz"), ("en", "de")),
        (("a.pt-BR", "a.zh_Hans"), ("pt-BR", "zh_Hans")),
        (("a.en", "a.en"), None),
        (("a.txt", "b.txt"), None),
    ],
)
def test_languages_by_suffix(files: tuple[str, ...], expected: tuple[str, str] | None) -> None:
    assert guess_languages(SourceConfig(files)) == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SourceConfig(()), "files: expected one or two"),
        (lambda: SourceConfig(("a",), format="xml"), "format: expected one of auto, plain, .* found 'xml'"),
        (lambda: SourceConfig(("a",), weight=-1), "weight: expected a number of 0 or more, found -1"),
        (lambda: SourceConfig(("a",), weight=float("nan")), "weight: expected a number of 0 or more"),
        (lambda: CleanConfig(max_length=0), "max_length: expected at least 1, found 0"),
        (lambda: CleanConfig(max_ratio=0.5), r"max_ratio: expected at least 1, found 0\.5"),
        (lambda: DataConfig(()), "train: expected at least one corpus"),
        (lambda: DataConfig((SourceConfig(("a",)),), valid_size=-1), "valid_size: expected 0 or more"),
    ],
)
def test_config_mistakes_name_the_field(make: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make()  # type: ignore[operator]
