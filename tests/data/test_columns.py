"""Which columns of a table are read: headers with languages beside other fields, and no header."""

from pathlib import Path

import pytest

from dragoman.data.config import SourceConfig
from dragoman.data.formats import Pair, describe_columns, guess_languages, read_pairs
from dragoman.data.formats.columns import find_sides, text_columns
from dragoman.data.formats.language_codes import language_named

UNKNOWN = ("src", "tgt")


@pytest.mark.parametrize(
    ("names", "languages", "expected"),
    [
        (["id", "en", "de"], UNKNOWN, (1, 2)),
        (["en", "de", "id"], UNKNOWN, (0, 1)),
        (["id", "en"], UNKNOWN, (0, 1)),  # Indonesian
        (["id", "en", "note"], UNKNOWN, None),  # one language, the key of a row and a remark
        (["en", "de", "client"], UNKNOWN, (0, 1)),
        (["English", "German"], UNKNOWN, (0, 1)),
        (["Deutsch", "Englisch?", "Français"], UNKNOWN, None),  # a sentence, not a name
        (["key", "Deutsch", "Français"], UNKNOWN, (1, 2)),
        (["key", "Deutsch", "Français"], ("fr", "de"), (2, 1)),
        (["text_en", "text_de", "domain"], UNKNOWN, (0, 1)),
        (["en_sentence", "hau_sentence"], UNKNOWN, (0, 1)),
        (["eng", "hau"], UNKNOWN, (0, 1)),
        (["key", "en-GB", "pt_BR"], UNKNOWN, (1, 2)),
        (["English (UK)", "German (DE)"], UNKNOWN, (0, 1)),
        (["key", "en", "de", "fr"], UNKNOWN, (1, 2)),
        (["key", "en", "de", "fr"], ("en", "fr"), (1, 3)),
        (["input", "output", "split"], UNKNOWN, (0, 1)),
        (["en", "en", "de"], UNKNOWN, None),
        (["de", "note"], UNKNOWN, None),
        (["It is a dog.", "Es ist ein Hund."], UNKNOWN, None),
    ],
)
def test_header(names: list[str], languages: tuple[str, str], expected: tuple[int, int] | None) -> None:
    assert find_sides(names, *languages) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["1", "a dog", "ein Hund"], ["2", "a cat", "eine Katze"]], (1, 2)),
        ([["a dog", "ein Hund", "CC-BY 2.0 by someone"], ["a cat", "eine Katze", "by another"]], (0, 1)),
        ([["a", "2024-01-02 10:00", "b"], ["c", "2024-01-03 11:30", "d"]], (0, 2)),
        ([["http://example.org/1", "a", "b"], ["http://example.org/2", "c", "d"]], (1, 2)),
        ([["en-de", f"a{n}", f"b{n}"] for n in range(5)], (1, 2)),
        ([["en-de", f"a{n}", f"b{n}"] for n in range(4)], (0, 1)),  # too few rows to call it constant
        ([["1", "2", "3"], ["4", "5", "6"]], (0, 1)),  # all numbers: arithmetic
    ],
)
def test_without_a_header(rows: list[list[str]], expected: tuple[int, int]) -> None:
    assert text_columns(rows) == expected


def source_of(path: Path, text: str) -> SourceConfig:
    path.write_text(text, encoding="utf-8")
    return SourceConfig((str(path),))


def test_a_table_with_keys_is_read_and_described(tmp_path: Path) -> None:
    source = source_of(tmp_path / "a.csv", "id,en,de\n7,hello,hallo\n8,dog,Hund\n")
    assert guess_languages(source) == ("en", "de")
    assert list(read_pairs(source, *UNKNOWN)) == [Pair("hello", "hallo", 2), Pair("dog", "Hund", 3)]
    assert describe_columns(source, *UNKNOWN) == "en → de of id, en, de"


def test_a_table_without_names_is_described_by_number(tmp_path: Path) -> None:
    source = source_of(tmp_path / "a.tsv", "\n7\thello\thallo\n8\tdog\tHund\n")
    assert list(read_pairs(source, *UNKNOWN)) == [
        Pair("", "", 1),
        Pair("hello", "hallo", 2),
        Pair("dog", "Hund", 3),
    ]
    assert describe_columns(source, *UNKNOWN) == "2 → 3 of 3 columns without names"
    two = source_of(tmp_path / "b.tsv", "a\tb\n")
    assert describe_columns(two, *UNKNOWN) == "1 → 2 of 2 columns without names"
    assert describe_columns(SourceConfig(("a.en", "a.de")), *UNKNOWN) is None


def test_fields_of_json_beside_the_languages(tmp_path: Path) -> None:
    source = source_of(tmp_path / "a.jsonl", '{"en": "dog", "de": "Hund", "key": 1}\n')
    assert list(read_pairs(source, *UNKNOWN)) == [Pair("dog", "Hund", 1)]
    assert guess_languages(source) == ("en", "de")
    nested = source_of(tmp_path / "b.jsonl", '{"id": 3, "translation": {"fr": "chien", "it": "cane"}}\n')
    assert guess_languages(nested) == ("fr", "it")


def test_names_of_languages() -> None:
    assert [language_named(name) for name in ("German", "deutsch", "DE", "deu", "pt_BR", "dog")] == [
        *("de", "de", "de", "deu", "pt-br"),
        None,
    ]
