"""Tables as spreadsheets, translation tools and hubs of data write them: a header is no pair, and a number or
an identifier is no text."""

import json
from pathlib import Path

import pytest

from dragoman.data.config import SourceConfig
from dragoman.data.formats import Pair, describe_columns, guess_languages, read_pairs
from dragoman.data.formats.columns import is_header, text_columns
from dragoman.data.formats.headers import language_in
from dragoman.errors import UserError

UNKNOWN = ("src", "tgt")
ENGLISH = [
    "The dog sleeps, as always.",
    "Where is it?",
    "We eat bread; so do they.",
    "Good morning!",
    "A cat.",
]
GERMAN = ["Der Hund schläft, wie immer.", "Wo ist es?", "Wir essen Brot; sie auch.", "Guten Morgen!", "Sie."]
BOTH = list(zip(ENGLISH, GERMAN, strict=True))


def table(path: Path, header: str, row: str, delimiter: str = ",") -> SourceConfig:
    """A table whose rows are as in `row`: `#` is the number, `E` and `G` are the sentences, `D` is a date."""
    lines = [header] if header else []
    for number, (english, german) in enumerate(BOTH):
        told = {"#": str(number), "E": f'"{english}"', "G": f'"{german}"', "D": f"2024-01-1{number}"}
        lines.append(delimiter.join(told.get(c, c.replace("#", str(number))) for c in row.split(" ")))
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return SourceConfig((str(path),))


def texts(source: SourceConfig) -> list[tuple[str, str]]:
    languages = guess_languages(source) or UNKNOWN
    return [(pair.src, pair.tgt) for pair in read_pairs(source, *languages)]


@pytest.mark.parametrize(
    ("header", "row", "columns", "languages"),
    [
        ("\ufeffEN,DE", "E G", "EN → DE of EN, DE", ("en", "de")),
        ('"en","de"', "E G", "en → de of en, de", ("en", "de")),
        ("Englisch,Deutsch", "E G", "Englisch → Deutsch of Englisch, Deutsch", ("en", "de")),
        ("Anglais,Allemand,Date", "E G D", "Anglais → Allemand of Anglais, Allemand, Date", ("en", "de")),
        ("Satz (Englisch),Satz (Deutsch)", "E G", None, ("en", "de")),
        ("EN (source),DE (target)", "E G", None, ("en", "de")),
        (
            "key,en_US,de_DE,comment",
            "k.# E G see",
            "en_US → de_DE of key, en_US, de_DE, comment",
            ("en", "de"),
        ),
        ("sentence_eng_Latn,sentence_deu_Latn", "E G", None, ("eng", "deu")),
        (
            "Unnamed: 0,English,German",
            "# E G",
            "English → German of Unnamed: 0, English, German",
            ("en", "de"),
        ),
        (",en,de", "# E G", "en → de of , en, de", ("en", "de")),
        (
            "Nr.,Englisch,Deutsch,Datum",
            "# E G D",
            "Englisch → Deutsch of Nr., Englisch, Deutsch, Datum",
            ("en", "de"),
        ),
        ("sc,en,de", "# E G", "en → de of sc, en, de", ("en", "de")),
        ("no,en,de", "# E G", "en → de of no, en, de", ("en", "de")),
        ("sep=,\nen,de", "E G", "en → de of en, de", ("en", "de")),
        ("Quelle,Ziel", "E G", "Quelle → Ziel of Quelle, Ziel", None),
        ("Ausgangstext,Übersetzung", "E G", None, None),
        ("SourceText,TargetText", "E G", None, None),
        ("source,translation", "E G", None, None),
        ("msgid,msgstr", "E G", None, None),
        ("Source (EN),Target (DE)", "E G", None, ("en", "de")),
        ("id,src,trg", "# E G", "src → trg of id, src, trg", None),
        ("text,translation,source", "E G D", "text → translation of text, translation, source", None),
        ("src,mt,ref,score", "E x# G 0.5", "src → ref of src, mt, ref, score", None),
        ("question,answer", "E G", None, None),
        ("sentence1,sentence2,lang", "E G en", None, None),
        ("nr,foo,bar", "# E G", "foo → bar of nr, foo, bar", None),
        ("foo,added,bar", "E D G", "foo → bar of foo, added, bar", None),
        ("", "# E G D", "2 → 3 of 4 columns without names", None),
        ("", "menu.open# E G", "2 → 3 of 3 columns without names", None),
        ("", "KEY_# E G", "2 → 3 of 3 columns without names", None),
        ("", "D A-# E G Meier", "3 → 4 of 5 columns without names", None),
        ("", "E G", "1 → 2 of 2 columns without names", None),
    ],
)
def test_the_sentences_alone_are_read(
    tmp_path: Path, header: str, row: str, columns: str | None, languages: tuple[str, str] | None
) -> None:
    source = table(tmp_path / "a.csv", header, row)
    assert texts(source) == BOTH
    assert guess_languages(source) == languages
    told = describe_columns(source, *(languages or UNKNOWN))
    assert told is not None and (columns is None or told == columns)


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters(tmp_path: Path, delimiter: str) -> None:
    """Each of the sentences could also be cut at its comma."""
    source = table(tmp_path / "a.csv", delimiter.join(("source", "target")), "E G", delimiter)
    assert texts(source) == BOTH
    path = tmp_path / "b.csv"
    path.write_text("".join(f"Well, {n}{delimiter}Nun gut {n}\n" for n in range(5)), "utf-8")
    assert texts(SourceConfig((str(path),)))[0] == ("Well, 0", "Nun gut 0")


@pytest.mark.parametrize("header", ["id,en", "lang,text", "id,comment,en"])
def test_a_table_with_one_column_of_text_is_refused(tmp_path: Path, header: str) -> None:
    row = {"id,en": "# E", "lang,text": "en E", "id,comment,en": "# x E"}[header]
    names = ", ".join(map(repr, header.split(",")))
    with pytest.raises(UserError, match=rf"a\.csv:1: the columns {names} do not tell which two .* --columns"):
        texts(table(tmp_path / "a.csv", header, row))


def test_numbers_can_be_a_side(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("number,words\n1,one\n2,two\n3,three\n", "utf-8")
    source = SourceConfig((str(path),))
    assert texts(source) == [("1", "one"), ("2", "two"), ("3", "three")]
    assert describe_columns(source, *UNKNOWN) == "number → words of number, words"
    with pytest.raises(UserError, match="3 columns without names do not tell"):
        texts(table(tmp_path / "b.csv", "", "# E D"))


def test_columns_by_number_beside_a_header(tmp_path: Path) -> None:
    source = table(tmp_path / "a.csv", "nr,foo,bar", "# E G")
    assert texts(SourceConfig(source.files, src="2", tgt="3")) == BOTH


def test_a_header_alone_is_no_pair(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,en,de\n", "utf-8")
    assert texts(SourceConfig((str(tmp_path / "a.csv"),))) == []


def test_quoted_names_above_tabs(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text('"en"\t"de"\n"a ""b"""\t"c"\n', "utf-8")
    assert texts(SourceConfig((str(tmp_path / "a.tsv"),))) == [('a "b"', "c")]
    (tmp_path / "b.tsv").write_text('"Yes."\t"Ja."\n"No."\t"Nein."\n', "utf-8")
    assert texts(SourceConfig((str(tmp_path / "b.tsv"),)))[0] == ('"Yes."', '"Ja."')


def test_pairs_of_words_are_no_header() -> None:
    below = [["cat", "Katze"], ["dog", "Hund"], ["7", "7"]]
    for first in (["German", "Deutsch"], ["date", "Datum"], ["note", "Notiz"], ["source", "Quelle"]):
        assert not is_header(first, below)
    for first in (["cat", "AB"], ["cat", "CD"]):
        assert not is_header(first, [[word, "AB"] for word in "abcdef"])
    rows = [[f"word {n}", f"Wort {n}", ("Meier", "Huber")[n % 2]] for n in range(20)]
    assert text_columns([[who, src, tgt] for src, tgt, who in rows]) == (1, 2)


def test_fields_of_objects(tmp_path: Path) -> None:
    def written(**fields: object) -> SourceConfig:
        (tmp_path / "a.jsonl").write_text(json.dumps(fields) + "\n", "utf-8")
        return SourceConfig((str(tmp_path / "a.jsonl"),))

    source = written(id="17", Englisch="dog", Deutsch="Hund")
    assert list(read_pairs(source, *UNKNOWN)) == [Pair("dog", "Hund", 1)]
    assert describe_columns(source, *UNKNOWN) == "Englisch → Deutsch of id, Englisch, Deutsch"
    nested = written(id=3, translation={"en": "dog", "de": "Hund"})
    assert describe_columns(nested, *UNKNOWN) == "en → de of en, de"
    assert texts(written(instruction="Translate.", input="dog", output="Hund")) == [("dog", "Hund")]
    for fields in ({"id": "17", "en": "dog"}, {"id": 17, "en": "dog"}):
        with pytest.raises(UserError, match="found 'id', 'en'"):
            texts(written(**fields))
    for text in ('[{"en": "dog", "de": "Hund"}]', '[\n{"en": "dog", "de": "Hund"}\n]'):
        (tmp_path / "b.json").write_text(text, "utf-8")
        with pytest.raises(UserError, match="write one object per line"):
            texts(SourceConfig((str(tmp_path / "b.json"),)))


def test_columns_of_parquet(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def written(columns: dict[str, object]) -> SourceConfig:
        pq.write_table(pa.table(columns), tmp_path / "a.parquet")
        return SourceConfig((str(tmp_path / "a.parquet"),))

    keys = [str(n) for n in range(5)]
    source = written({"id": keys, "Englisch": ENGLISH, "Deutsch": GERMAN})
    assert texts(source) == BOTH and guess_languages(source) == ("en", "de")
    assert describe_columns(source, *UNKNOWN) == "Englisch → Deutsch of id, Englisch, Deutsch"
    assert texts(written({"a": keys, "b": ENGLISH, "c": GERMAN})) == BOTH
    assert texts(written({"translation": [{"en": a, "de": b} for a, b in BOTH]})) == BOTH
    with pytest.raises(UserError, match="expected two text columns, found id, en; say which with --columns"):
        texts(written({"id": keys, "en": ENGLISH}))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("DE (target)", "de"), ("Target: German", "de"), ("Texte (Anglais)", "en"), ("Tschechisch", "cs")),
        *(("source", None), ("text", None), ("Alemán", "de"), ("sentence_zho_Hans", "zho-hans"), ("", None)),
    ],
)
def test_languages_in_names(name: str, expected: str | None) -> None:
    assert language_in(name) == expected
